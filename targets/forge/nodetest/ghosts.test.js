'use strict';
// "Reproducing the ghost" in "Locking in Forge KVS", with one second for its
// thirty. CONTEND_SIM_URL never sweeps; CONTEND_SWEPT_URL does so a second after
// expiry.
const assert = require('node:assert/strict');
const test = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { kvs, Filter, FilterConditions, MetadataField } = require('@forge/kvs');
const { at, conditionFailed, conflict, refused } = require('./helpers');

const second = { value: 1, unit: 'SECONDS' };
const leased = { keyPolicy: 'FAIL_IF_EXISTS', ttl: second };

// expired returns when a key's ttl has passed, and gives its expireTime.
async function expired(read) {
  const { expireTime } = await read({ metadataFields: [MetadataField.EXPIRE_TIME] });
  while (Date.now() <= Date.parse(expireTime)) await sleep(50);
  return expireTime;
}

test('an expired, unswept key still conflicts, and every read shows its value and expireTime', async () => {
  await kvs.set('ghost', 'first', leased);
  const expireTime = await expired((options) => kvs.get('ghost', options));
  for (let probe = 0; probe < 4; probe++) {
    await refused(kvs.set('ghost', 'second', leased), conflict);
    assert.equal(await kvs.get('ghost'), 'first');
    assert.deepEqual(
      await kvs.get('ghost', { metadataFields: [MetadataField.EXPIRE_TIME] }),
      { key: 'ghost', value: 'first', expireTime },
    );
  }
  const { results } = await kvs.query({ metadataFields: [MetadataField.EXPIRE_TIME] }).getMany();
  assert.deepEqual(results, [{ key: 'ghost', value: 'first', expireTime }]);
});

test('a ghost in an entity is seen by writes and conditions (an assumption)', async () => {
  const lease = kvs.entity('lease');
  await lease.set('ghost', { holder: 'first' }, leased);
  await expired((options) => lease.get('ghost', options));
  await refused(lease.set('ghost', { holder: 'second' }, leased), { ...conflict, path: 'entity/set' });
  const absent = { entityName: 'lease', conditions: new Filter().and('holder', FilterConditions.notExists()) };
  await refused(kvs.transact().set('ghost', { holder: 'second' }, absent).execute(), conditionFailed);
  assert.deepEqual(await lease.get('ghost'), { holder: 'first' });
});

test('once it is swept the key is acquired, and not before', async () => {
  await at(process.env.CONTEND_SWEPT_URL, async () => {
    const start = Date.now();
    await kvs.set('ghost', 'first', leased);
    for (;;) {
      try {
        await kvs.set('ghost', 'second', { keyPolicy: 'FAIL_IF_EXISTS' });
        break;
      } catch (error) {
        assert.equal(error.code, 'KEY_CONFLICT');
      }
      await sleep(50);
    }
    assert.ok(Date.now() - start >= 2000, 'acquired before the sweep, a second after the ttl of one');
    assert.deepEqual(
      await kvs.get('ghost', { metadataFields: [MetadataField.EXPIRE_TIME] }),
      { key: 'ghost', value: 'second', expireTime: undefined },
    );
  });
});
