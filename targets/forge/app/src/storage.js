// Does an op with @forge/kvs, once, and sorts what came back. Nothing is retried.

import { Filter, FilterConditions, WhereConditions } from '@forge/kvs';
import { now, until } from './clock.js';

const ENTITY = 'contend-record';

// perform does an op, as request.js gives it, and gives its reply: the JSON of
// contend.reply/1. create is the strategy of create-if-absent.
export async function perform(kvs, op, create) {
  if (op.kind === 'sequence') return performSequence(kvs, op, create);
  // A plain key can carry no condition. A key's records are all in one place.
  const inEntity = op.home === 'version' || create !== 'kvs';
  if (op.guard === 'version' && !inEntity) {
    return { outcome: 'unsupported', attempts: 0, message: 'a plain key of Forge KVS cannot carry a condition; an entity can' };
  }
  const place = inEntity ? kvs.entity(ENTITY) : kvs;
  const began = await until(op.notBefore);
  let result, error;
  try {
    result = await ask(kvs, place, op, create, inEntity);
  } catch (thrown) {
    error = thrown ?? {};
  }
  const ended = Math.max(began, now());
  const reply = error ? failed(error) : op.kind === 'read' ? found(result, inEntity) : { outcome: 'ok' };
  return { ...reply, attempts: 1, server: { began_ms: began, ended_ms: ended } };
}

// list gives a page of keys that begin with a prefix, and a cursor where there are
// more. Entities are listed by an index, so other keys of theirs are passed over.
export async function list(kvs, { home, prefix, cursor }) {
  let query = home === 'version' ? kvs.entity(ENTITY).query().index('version') : kvs.query().where('key', WhereConditions.beginsWith(prefix));
  if (cursor) query = query.cursor(cursor);
  const { results, nextCursor } = await query.limit(100).getMany();
  return { keys: results.map((item) => item.key).filter((key) => key.startsWith(prefix)), cursor: nextCursor };
}

// The outcome of a sequence is that of its last op.
async function performSequence(kvs, { notBefore, ops }, create) {
  await until(notBefore);
  const parts = [];
  for (const op of ops) parts.push(await perform(kvs, op, create));
  const asked = parts.filter((part) => part.server);
  return {
    outcome: parts.at(-1).outcome,
    attempts: asked.length > 0 ? 1 : 0,
    server: asked.length > 0 ? { began_ms: asked[0].server.began_ms, ended_ms: asked.at(-1).server.ended_ms } : undefined,
    parts,
  };
}

function ask(kvs, place, op, create, inEntity) {
  switch (op.kind) {
    case 'read':
      return place.get(op.key, { metadataFields: ['EXPIRE_TIME'] });
    case 'delete':
      return place.delete(op.key);
  }
  const value = inEntity ? attributesOf(op.value) : op.value;
  const ttl = op.ttl > 0 ? { ttl: { value: op.ttl, unit: 'SECONDS' } } : undefined;
  const condition = conditionOf(op, create);
  if (condition) {
    const entity = { entityName: ENTITY, conditions: new Filter().and('version', condition) };
    // The fourth argument: in the third a ttl is dropped without a word.
    return kvs.transact().set(op.key, value, entity, ttl).execute();
  }
  return place.set(op.key, value, op.guard === 'absent' ? { ...ttl, keyPolicy: 'FAIL_IF_EXISTS' } : ttl);
}

// conditionOf gives what a transaction demands of the version, if the op needs one.
function conditionOf(op, create) {
  if (op.guard === 'version') return FilterConditions.equalTo(op.counter); // a number: "0" is answered with 422
  if (op.guard === 'absent' && create === 'transact') return FilterConditions.notExists();
  return undefined;
}

function attributesOf({ token, version, updated_at, expires_at, body }) {
  return { token, version, updatedAt: milliseconds(updated_at), expiresAt: milliseconds(expires_at), body };
}

function milliseconds(time) {
  return time === undefined ? undefined : Date.parse(time);
}

// found leaves the record out where the value is none of ours. The package tells
// no status of a success, and gives undefined for KEY_NOT_FOUND alone.
function found(item, inEntity) {
  if (item === undefined) return { outcome: 'missing', code: 'KEY_NOT_FOUND' };
  return { outcome: 'ok', record: recordOf(item.value, inEntity), expires: rfc3339(item.expireTime) };
}

function recordOf(value, inEntity) {
  if (typeof value?.token !== 'string' || !Number.isSafeInteger(value.version)) return undefined;
  const { token, version, body } = value;
  const updated = inEntity ? value.updatedAt : value.updated_at;
  const expires = inEntity ? value.expiresAt : value.expires_at;
  return { token, version, updated_at: rfc3339(updated), expires_at: rfc3339(expires), body };
}

// rfc3339 gives a time in the form that a reply has, to the millisecond.
function rfc3339(time) {
  const date = new Date(time ?? NaN);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

const ANSWERS = [
  { code: 'KEY_NOT_FOUND', status: 404, outcome: 'missing' },
  { code: 'KEY_CONFLICT', status: 409, outcome: 'conflict' },
  { code: 'CONDITIONAL_CHECK_FAILED', status: 400, outcome: 'conflict' },
  { status: 429, outcome: 'throttled' },
  { status: 400, outcome: 'invalid' },
  { status: 404, outcome: 'invalid' },
  { status: 422, outcome: 'invalid' },
];

// outcomeOf sorts an error by the first row that fits. One without a status is of
// the way there, and that or a server's error says nothing of the write; nor does a
// success that cannot be read.
function outcomeOf(code, status) {
  if (status === undefined || status < 300 || status >= 500) return 'unknown';
  const row = ANSWERS.find((answer) => (answer.code ?? code) === code && answer.status === status);
  return row?.outcome ?? 'unmapped';
}

// failed goes by code and status: the name is the same for every error.
function failed(error) {
  const { name, message, code, responseDetails, context, cause } = error;
  const status = responseDetails?.status;
  return {
    outcome: outcomeOf(code, status),
    code: code ?? 'connection',
    status,
    message: cause?.message ? `${message}: ${cause.message}` : message,
    trace: responseDetails?.traceId ?? undefined,
    raw: { name, message, code, responseDetails, context },
  };
}
