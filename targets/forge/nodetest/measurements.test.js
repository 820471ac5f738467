'use strict';
// The measurements of "Locking in Forge KVS" that need no passing of time; see
// ghosts.test.js for the other.
const assert = require('node:assert/strict');
const test = require('node:test');
const { kvs, Filter, FilterConditions } = require('@forge/kvs');
const {
  barrier, conditionFailed, conflict, incorrectType, race, refused, sent, unprocessable,
} = require('./helpers');

const lease = kvs.entity('lease');
const day = 24 * 60 * 60 * 1000;
const versionIs = (condition) => ({ entityName: 'lease', conditions: new Filter().and('version', condition) });
const write = (key, value, guard) => kvs.transact().set(key, value, guard).execute();

test('of twelve FAIL_IF_EXISTS on one key one acquires and eleven conflict, with a body of 89 bytes', async () => {
  const lengths = [];
  assert.deepEqual(
    await race(12, async (i) => {
      try {
        await kvs.set('claim', { holder: i }, { keyPolicy: 'FAIL_IF_EXISTS' });
      } catch (error) {
        lengths.push(error.responseDetails.responseBodyLength);
        throw error;
      }
      return 'acquired';
    }),
    { acquired: 1, 'KEY_CONFLICT 409': 11 },
  );
  assert.deepEqual(lengths, Array(11).fill(89));
  await refused(kvs.set('claim', 'late', { keyPolicy: 'FAIL_IF_EXISTS' }), conflict);
});

// acquireLease is the article's, with its time of holding, and a pause between the
// read and the write.
async function acquireLease(key, holder, pause = async () => {}) {
  const now = Date.now();
  const current = await lease.get(key);
  await pause();
  if (current && current.expiresAtMs > now) return 'held';
  const next = { holder, version: (current ? current.version : 0) + 1, expiresAtMs: now + day };
  await write(key, next, versionIs(current ? FilterConditions.equalTo(current.version) : FilterConditions.notExists()));
  return 'won';
}

test('invocations that start after the first one has written lose at the read: the guard is never asked', async () => {
  const calls = await sent(async () => {
    assert.equal(await acquireLease('spread', 'first'), 'won');
    assert.deepEqual(await race(11, (i) => acquireLease('spread', `late ${i}`)), { held: 11 });
  });
  assert.equal(calls.filter(({ path }) => path === '/api/v1/transaction').length, 1);
  assert.equal((await lease.get('spread')).holder, 'first');
});

test('invocations that have all read before the first one writes lose at the guard', async () => {
  const everyoneHasRead = barrier(12);
  const calls = await sent(async () => {
    assert.deepEqual(
      await race(12, (i) => acquireLease('together', `contender ${i}`, everyoneHasRead)),
      { won: 1, 'CONDITIONAL_CHECK_FAILED 400': 11 },
    );
  });
  assert.equal(calls.filter(({ path }) => path === '/api/v1/transaction').length, 12);
  assert.equal((await lease.get('together')).version, 1);
});

test('of twelve transactions on the condition that the seeded version is 0 one wins', async () => {
  await lease.set('seeded', { holder: '', version: 0 });
  assert.deepEqual(
    await race(12, async (i) => {
      await write('seeded', { holder: `contender ${i}`, version: 1 }, versionIs(FilterConditions.equalTo(0)));
      return 'won';
    }),
    { won: 1, 'CONDITIONAL_CHECK_FAILED 400': 11 },
  );
  assert.match((await lease.get('seeded')).holder, /^contender \d+$/);
});

test('equalTo(0) on an integer is true or false, equalTo("0") is a bare 422', async () => {
  await lease.set('typed', { version: 0 });
  await refused(write('typed', { version: 1 }, versionIs(FilterConditions.equalTo('0'))), unprocessable);
  await write('typed', { version: 1 }, versionIs(FilterConditions.equalTo(0)));
  await refused(write('typed', { version: 2 }, versionIs(FilterConditions.equalTo(0))), conditionFailed);
  assert.deepEqual(await lease.get('typed'), { version: 1 });
});

test('an integer is an int32; in a transaction the refusal does not name the property', async () => {
  for (const version of [2147483647, -2147483648]) {
    await lease.set('bounds', { version });
    assert.deepEqual(await lease.get('bounds'), { version });
    await write('bounds in a transaction', { version }, { entityName: 'lease' });
    assert.deepEqual(await lease.get('bounds in a transaction'), { version });
  }
  for (const version of [2147483648, -2147483649]) {
    await refused(lease.set('bounds', { version }), incorrectType('version', 'integer'));
    await refused(write('bounds in a transaction', { version }, { entityName: 'lease' }), unprocessable);
  }
});

test('a time in milliseconds reads back exact from a float', async () => {
  await lease.set('time', { expiresAtMs: 1787116436381 });
  assert.deepEqual(await lease.get('time'), { expiresAtMs: 1787116436381 });
});

test('a condition on an attribute that is in no index works', async () => {
  const holderIs = (name) => ({
    entityName: 'lease', conditions: new Filter().and('holder', FilterConditions.equalTo(name)),
  });
  await lease.set('unindexed', { holder: 'ada', version: 1 });
  await refused(write('unindexed', { holder: 'eve', version: 2 }, holderIs('bob')), conditionFailed);
  await write('unindexed', { holder: 'bob', version: 2 }, holderIs('ada'));
  assert.deepEqual(await lease.get('unindexed'), { holder: 'bob', version: 2 });
});

test('a transaction takes 25 operations, not 26, and a key once', async () => {
  const sets = (n, prefix) => {
    const transaction = kvs.transact();
    for (let i = 0; i < n; i++) transaction.set(`${prefix} ${i}`, i);
    return transaction.execute();
  };
  await sets(25, 'twenty-five');
  assert.equal(await kvs.get('twenty-five 24'), 24);
  await refused(sets(26, 'twenty-six'), unprocessable);
  assert.equal(await kvs.get('twenty-six 0'), undefined);
  await refused(kvs.transact().set('twice', 1).delete('twice').execute(), {
    status: 400, code: 'KEY_DUPLICATION_ERROR', path: 'transaction', message: 'Duplicate key found in request',
  });
  assert.equal(await kvs.get('twice'), undefined);
});
