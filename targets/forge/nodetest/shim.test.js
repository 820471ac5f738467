'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');
const { kvs } = require('@forge/kvs');
const { sql, ForgeSQLAPIError } = require('@forge/sql');
const { answering, at } = require('./helpers');

test('an answer marked as simulated is passed on', async () => {
  await answering({ status: 204 }, () => kvs.set('key', 1));
  assert.equal(globalThis.__contend_simulated__, undefined);
  await kvs.set('key', 1);
  assert.equal(globalThis.__contend_simulated__, true);
});

test('each package has its paths, and no Host but the server\'s own', async () => {
  const requests = await answering({ status: 200, body: '{"rows":[]}' }, async () => {
    await at(`${process.env.CONTEND_SIM_URL}/`, async () => {
      await kvs.set('key', 1);
      await sql.executeRaw('SELECT 1');
      await sql.executeDDL('CREATE TABLE t (id INT)');
      await globalThis.__forge_fetch__({ type: 'kvs' }, '/api/v1/get', { headers: { Host: 'platform.example' } });
    });
  });
  assert.deepEqual(requests.map(({ url }) => url), [
    '/kvs/api/v1/set', '/sql/api/v1/execute', '/sql/api/v1/execute/ddl', '/kvs/api/v1/get',
  ]);
  for (const { headers: { host } } of requests) assert.match(host, /^127\.0\.0\.1:\d+$/);
});

test('a call of another type is refused, and says so', async () => {
  await assert.rejects(
    globalThis.__forge_fetch__({ type: 'graph', provider: 'app', remote: 'graph' }, '/graphql', { method: 'POST' }),
    { message: 'forge-shim: no local server for /graphql: its type is graph, not kvs or sql' },
  );
});

test('without --sql the server says that there is no database', async () => {
  await assert.rejects(sql.executeRaw('SELECT 1'), (error) => {
    assert.ok(error instanceof ForgeSQLAPIError);
    assert.match(error.message, /database/i);
    return true;
  });
});
