'use strict';
// Every answer of the platform that is known, as the error that the package
// builds of it. For 409 see measurements.test.js, for 429 quota.test.js.
const assert = require('node:assert/strict');
const { before, test } = require('node:test');
const { kvs, Filter, FilterConditions } = require('@forge/kvs');
const { answering, conditionFailed, incorrectType, refused, unprocessable } = require('./helpers');

const lease = kvs.entity('lease');
const missing = { code: 'KEY_NOT_FOUND', message: 'Provided key does not exist' };
const versionIs = (version) => ({
  entityName: 'lease', conditions: new Filter().and('version', FilterConditions.equalTo(version)),
});
const items = (n) => Array.from({ length: n }, (_, i) => ({ key: `item ${i}`, value: i }));
const transactionOf = (n) => items(n).reduce((t, { key, value }) => t.set(key, value), kvs.transact());

before(() => lease.set('present', { version: 1 }));

for (const [name, act, want] of [
  ['a false condition', () => kvs.transact().set('present', { version: 2 }, versionIs(0)).execute(), conditionFailed],
  ['check on a missing entity key', () => kvs.transact().check('absent', versionIs(0)).execute(), conditionFailed],
  ['a condition of the wrong type', () => kvs.transact().check('present', versionIs('1')).execute(), unprocessable],
  ['an integer out of range in a transaction',
    () => kvs.transact().set('present', { version: 2 ** 31 }, { entityName: 'lease' }).execute(), unprocessable],
  ['26 operations', () => transactionOf(26).execute(), unprocessable],
  ['one key twice in a transaction', () => kvs.transact().set('twice', 1).set('twice', 2).execute(), {
    status: 400, code: 'KEY_DUPLICATION_ERROR', path: 'transaction', message: 'Duplicate key found in request',
  }],
  ['a transaction without operations', () => kvs.transact().execute(), {
    status: 400, code: 'INVALID_TRANSACTION_REQUEST', path: 'transaction',
    message: 'Transaction request must include one of set, check or delete.',
  }],
  ['an integer out of range', () => lease.set('present', { version: 2 ** 31 }), incorrectType('version', 'integer')],
  ['a mistyped integer', () => lease.set('present', { version: '2' }), incorrectType('version', 'integer')],
  ['an undeclared entity', () => kvs.entity('undeclared').set('present', {}), {
    status: 404, code: 'SCHEMA_NOT_FOUND', path: 'entity/set', message: 'The schema provided does not exist',
  }],
  ['a ttl of 0', () => kvs.set('present', 1, { ttl: { value: 0, unit: 'SECONDS' } }), {
    status: 400, code: 'INVALID_TTL', path: 'set', message: 'TTL value must be a positive integer, received: 0',
  }],
  ['FAIL_IF_EXISTS with returnValue (its message is not known)',
    () => kvs.set('present', 1, { keyPolicy: 'FAIL_IF_EXISTS', returnValue: 'LATEST' }), {
      status: 400, code: 'INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION', path: 'set',
    }],
  ['batchSet of 26', () => kvs.batchSet(items(26)), {
    status: 400, code: 'TOO_MANY_BATCH_ENTITIES', path: 'batch/set',
    message: 'Number of entities to set was 26, but you can only set a maximum of 25 entities at a time.',
  }],
  ['a metadata field that there is not', () => kvs.get('present', { metadataFields: ['SIZE'] }), {
    status: 400, code: 'BAD_REQUEST', path: 'get', message: 'Provided request body is invalid',
  }],
]) {
  test(name, async () => {
    await refused(act(), want);
    assert.deepEqual(await lease.get('present'), { version: 1 });
    for (const key of ['present', 'twice', 'item 0']) assert.equal(await kvs.get(key), undefined);
  });
}

test('batchGet of a missing key', async () => {
  assert.deepEqual(await kvs.batchGet([{ key: 'absent' }, { key: 'absent', entityName: 'lease' }]), {
    successfulKeys: [],
    failedKeys: [{ key: 'absent', error: missing }, { key: 'absent', entityName: 'lease', error: missing }],
  });
});

// The package hides this answer: get gives undefined.
test('get of a missing key, on the wire', async () => {
  for (const [path, body] of [['get', {}], ['secret/get', {}], ['entity/get', { entityName: 'lease' }]]) {
    const response = await globalThis.__forge_fetch__({ type: 'kvs' }, `/api/v1/${path}`, {
      method: 'POST', body: JSON.stringify({ key: 'absent', ...body }), headers: { 'content-type': 'application/json' },
    });
    assert.equal(response.status, 404, path);
    assert.equal(await response.text(), JSON.stringify(missing), path);
  }
});

// Nothing makes the server fail on purpose, so these bytes come from the test.
test('a generic failure', async () => {
  const body = { code: 'INTERNAL_SERVER_ERROR', message: 'An internal server error has occurred' };
  const headers = { 'x-b3-traceid': '0123456789abcdef'.repeat(2) };
  await answering({ status: 500, headers, body: JSON.stringify(body) }, () => refused(
    kvs.set('key', 1), { status: 500, path: 'set', ...body },
  ));
});
