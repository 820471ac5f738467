'use strict';
// @forge/sql on a real database behind the server.
const assert = require('node:assert/strict');
const { before, test } = require('node:test');
const { sql, errorCodes, migrationRunner, ForgeSQLAPIError } = require('@forge/sql');
const { barrier } = require('./helpers');

const run = (query, ...params) => sql.prepare(query).bindParams(...params).execute();
const update = (holder, version) => run(
  'UPDATE lease SET holder = ?, version = version + 1 WHERE id = ? AND version = ?', holder, 'lease', version,
);

before(async () => {
  await sql.executeDDL('CREATE TABLE lease (id VARCHAR(40) PRIMARY KEY, holder VARCHAR(40), version INT NOT NULL)');
  await run('INSERT INTO lease VALUES (?, ?, ?)', 'lease', null, 0);
});

test('DML answers what a driver of MySQL does', async () => {
  const { rows } = await run('INSERT INTO lease VALUES (?, ?, ?)', 'other', 'ada', 7);
  assert.deepEqual(Object.keys(rows).sort(), [
    'affectedRows', 'fieldCount', 'info', 'insertId', 'serverStatus', 'warningStatus',
  ]);
  assert.equal(rows.affectedRows, 1);
});

test('SELECT answers rows', async () => {
  assert.deepEqual(
    await run('SELECT id, holder, version FROM lease WHERE id = ?', 'other'),
    { rows: [{ id: 'other', holder: 'ada', version: 7 }] },
  );
  assert.deepEqual(await run('SELECT id FROM lease WHERE id = ?', 'absent'), { rows: [] });
  assert.deepEqual((await sql.executeRaw('SELECT 1 AS one, NULL AS nothing')).rows, [{ one: 1, nothing: null }]);
});

test('a lost optimistic update is a success with affectedRows 0', async () => {
  assert.equal((await update('ada', 0)).rows.affectedRows, 1);
  assert.equal((await update('bob', 0)).rows.affectedRows, 0);
  assert.deepEqual((await run('SELECT holder, version FROM lease WHERE id = ?', 'lease')).rows, [
    { holder: 'ada', version: 1 },
  ]);
});

test('of twelve optimistic updates that have read one version one is done', async () => {
  const everyoneHasRead = barrier(12);
  const affected = await Promise.all(Array.from({ length: 12 }, async (_, i) => {
    const { rows: [{ version }] } = await run('SELECT version FROM lease WHERE id = ?', 'lease');
    await everyoneHasRead();
    return (await update(`contender ${i}`, version)).rows.affectedRows;
  }));
  assert.deepEqual(affected.sort(), [...Array(11).fill(0), 1]);
});

test('migrations run once', async () => {
  migrationRunner.enqueue('v1', 'CREATE TABLE migrated (id INT PRIMARY KEY)');
  assert.deepEqual(await migrationRunner.run(), ['v1']);
  assert.deepEqual(await migrationRunner.run(), []);
  const [migration, ...others] = await migrationRunner.list();
  assert.equal(migration.name, 'v1');
  assert.ok(!Number.isNaN(migration.migratedAt.valueOf()), 'migratedAt is no date');
  assert.deepEqual(others, []);
});

test('an error has a code of the package, and the database\'s message', async () => {
  for (const query of ['SELEKT 1', 'SELECT * FROM absent', "INSERT INTO lease VALUES ('lease', '', 0)"]) {
    await assert.rejects(sql.executeRaw(query), (error) => {
      assert.ok(error instanceof ForgeSQLAPIError);
      assert.equal(error.name, 'ForgeSQLError');
      assert.ok([errorCodes.SQL_EXECUTION_ERROR, errorCodes.INVALID_SQL_QUERY].includes(error.code), error.code);
      assert.notEqual(error.message, '');
      const { status, ...details } = error.responseDetails;
      assert.ok(status >= 400 && status < 500, `status ${status}`);
      assert.deepEqual(Object.keys(details), ['statusText', 'traceId']);
      return true;
    });
  }
});

test('one statement a call', async () => {
  await assert.rejects(sql.executeRaw('SELECT 1; SELECT 2'), ForgeSQLAPIError);
});
