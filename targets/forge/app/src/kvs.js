// Forge KVS as a store: plain keys, and the entity.

import { Filter, FilterConditions, ForgeKvsError, WhereConditions, kvs } from '@forge/kvs';
import { askRaw, refuseRaw } from './raw.js';
import { milliseconds, rfc3339 } from './storage.js';

const ENTITY = 'contend-record';

const ANSWERS = [
  { code: 'KEY_NOT_FOUND', status: 404, outcome: 'missing' },
  { code: 'KEY_CONFLICT', status: 409, outcome: 'conflict' },
  { code: 'CONDITIONAL_CHECK_FAILED', status: 400, outcome: 'conflict' },
  { status: 429, outcome: 'throttled' },
  { status: 400, outcome: 'invalid' },
  { status: 404, outcome: 'invalid' },
  { status: 422, outcome: 'invalid' },
];

// kvsStore takes the strategy of create-if-absent.
export function kvsStore(create) {
  // A plain key can carry no condition. A key's records are all in one place.
  const inEntity = (op) => op.home === 'version' || create !== 'kvs';
  return {
    // Every error of the package carries the version that is installed.
    package: `@forge/kvs ${new ForgeKvsError('').packageVersion}`,
    answers: ANSWERS,
    codeOf: (error) => error.code,
    refuse(op) {
      if (op.kind === 'raw') return refuseRaw(op);
      if (!['version', 'unmodified', 'token'].includes(op.guard) || inEntity(op)) return undefined;
      return { outcome: 'unsupported', message: 'a plain key of Forge KVS cannot carry a condition; an entity can' };
    },
    async ready() {},
    async ask(op) {
      if (op.kind === 'raw') return askRaw(op);
      const result = await ask(op, create, inEntity(op));
      // Of the answer to a write or delete the package shows that it was one of success.
      return op.kind === 'read' ? found(result, inEntity(op)) : { outcome: 'ok' };
    },
  };
}

// listKvs gives a page of keys that begin with a prefix, and a cursor where there are
// more. Every entity has the index by-key; one on an attribute would leave out the
// records without it.
export async function listKvs({ home, prefix, cursor }) {
  const begins = WhereConditions.beginsWith(prefix);
  let query = home === 'version' ? kvs.entity(ENTITY).query().index('by-key').where(begins) : kvs.query().where('key', begins);
  if (cursor) query = query.cursor(cursor);
  const { results, nextCursor } = await query.limit(100).getMany();
  return { keys: results.map((item) => item.key).filter((key) => key.startsWith(prefix)), cursor: nextCursor };
}

function ask(op, create, inEntity) {
  const place = inEntity ? kvs.entity(ENTITY) : kvs;
  switch (op.kind) {
    case 'read':
      return place.get(op.key, { metadataFields: ['EXPIRE_TIME', 'UPDATED_AT'] });
    case 'delete':
      return op.guard
        ? kvs.transact().delete(op.key, { entityName: ENTITY, conditions: conditionsOf(op, create) }).execute()
        : place.delete(op.key);
  }
  const value = inEntity ? attributesOf(op.value) : op.value;
  const ttl = op.ttl > 0 ? { ttl: { value: op.ttl, unit: 'SECONDS' } } : undefined;
  const conditions = conditionsOf(op, create);
  if (conditions) {
    const entity = { entityName: ENTITY, conditions };
    // The fourth argument: in the third a ttl is dropped without a word.
    return kvs.transact().set(op.key, value, entity, ttl).execute();
  }
  return place.set(op.key, value, op.guard === 'absent' ? { ...ttl, keyPolicy: 'FAIL_IF_EXISTS' } : ttl);
}

// conditionsOf gives what a transaction demands of the record, if the op needs one.
function conditionsOf(op, create) {
  const where = (attribute, condition) => new Filter().and(attribute, condition);
  if (op.guard === 'version') return where('version', FilterConditions.equalTo(op.counter)); // a number: "0" is answered with 422
  if (op.guard === 'token') return where('token', FilterConditions.equalTo(op.token));
  if (op.guard === 'unmodified') return where('updatedAt', FilterConditions.equalTo(milliseconds(op.unmodified)));
  if (op.guard === 'absent' && create === 'transact') return where('version', FilterConditions.notExists());
  return undefined;
}

function attributesOf({ token, version, updated_at, expires_at, body }) {
  return { token, version, updatedAt: milliseconds(updated_at), expiresAt: milliseconds(expires_at), body };
}

// unexpected is the reply for a success that is not in the storage's shape.
function unexpected(result) {
  return { outcome: 'unmapped', code: 'unexpected', message: String(JSON.stringify(result)).slice(0, 200) };
}

// found leaves the record out where the value is none of ours. The package tells
// no status of a success, and gives undefined for KEY_NOT_FOUND alone.
function found(item, inEntity) {
  if (item === undefined) return { outcome: 'missing', code: 'KEY_NOT_FOUND' };
  if (typeof item?.key !== 'string' || item.value === undefined) return unexpected(item);
  return { outcome: 'ok', record: recordOf(item.value, inEntity), expires: rfc3339(item.expireTime), granted_ns: granted(item) };
}

// granted gives the time to live by the storage's own clock, from the last write to
// the expiry. The expiry may have whole seconds only: then it is up to a second less
// than was granted if the expiry was cut down, more if rounded up.
function granted({ expireTime, updatedAt }) {
  const milliseconds = Date.parse(expireTime) - updatedAt;
  return milliseconds > 0 ? Math.round(milliseconds * 1e6) : undefined;
}

function recordOf(value, inEntity) {
  if (typeof value?.token !== 'string' || !Number.isSafeInteger(value.version)) return undefined;
  const { token, version, body } = value;
  const updated = inEntity ? value.updatedAt : value.updated_at;
  const expires = inEntity ? value.expiresAt : value.expires_at;
  return { token, version, updated_at: rfc3339(updated), expires_at: rfc3339(expires), body };
}
