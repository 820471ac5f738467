// Calls of the wire protocol, {path, body}, made through @forge/kvs where that can
// express them: they reach the storage as they are, or not at all.

import { Filter, kvs } from '@forge/kvs';

const ITEM = ['key', 'value', 'options'];
const ENTITY_ITEM = [...ITEM, 'entityName'];
const PARTS = ['set', 'delete', 'check'];

// CALLS tells of each path the members of a body that the package can send, and how it
// is asked. What comes back has the shape of the wire; undefined is an empty answer.
const CALLS = {
  '/api/v1/get': { members: ['key', 'options'], ask: async ({ key, options }) => item(key, options, await kvs.get(key, options)) },
  '/api/v1/set': { members: ITEM, ask: ({ key, value, options }) => kvs.set(key, value, options) },
  '/api/v1/delete': { members: ['key'], ask: ({ key }) => kvs.delete(key) },
  '/api/v1/secret/get': { members: ['key', 'options'], ask: async ({ key, options }) => item(key, options, await kvs.getSecret(key, options)) },
  '/api/v1/secret/set': { members: ITEM, ask: ({ key, value, options }) => kvs.setSecret(key, value, options) },
  '/api/v1/secret/delete': { members: ['key'], ask: ({ key }) => kvs.deleteSecret(key) },
  '/api/v1/entity/get': {
    members: ['key', 'entityName', 'options'],
    ask: async ({ entityName, key, options }) => item(key, options, await kvs.entity(entityName).get(key, options)),
  },
  '/api/v1/entity/set': { members: ENTITY_ITEM, ask: ({ entityName, key, value, options }) => kvs.entity(entityName).set(key, value, options) },
  '/api/v1/entity/delete': { members: ['key', 'entityName'], ask: ({ entityName, key }) => kvs.entity(entityName).delete(key) },
  '/api/v1/batch/set': { items: ENTITY_ITEM, ask: (items) => kvs.batchSet(items) },
  '/api/v1/batch/delete': { items: ['key', 'entityName'], ask: (items) => kvs.batchDelete(items) },
  '/api/v1/batch/get': { items: ['key', 'entityName', 'options'], ask: (items) => kvs.batchGet(items) },
  '/api/v1/transaction': { members: PARTS, items: [...ENTITY_ITEM, 'conditions'], ask: transact },
  '/api/v1/query': { members: ['limit', 'after', 'where', 'options'], ask: query },
  '/api/v1/entity/query': { members: ['entityName', 'indexName', 'partition', 'range', 'filters', 'sort', 'cursor', 'limit', 'options'], ask: queryEntity },
};

const READS = ['/api/v1/get', '/api/v1/secret/get', '/api/v1/entity/get'];
const QUERIES = ['/api/v1/query', '/api/v1/entity/query'];

// refuseRaw gives the reply to a call that is not made, if it is such a one.
export function refuseRaw({ raw: { path, body }, prefix }) {
  const reason = Object.hasOwn(CALLS, path) ? unexpressed(CALLS[path], path, body, prefix) : `@forge/kvs has no call for ${path}`;
  return reason && { outcome: 'unsupported', message: reason };
}

// askRaw makes a call and gives its reply.
export async function askRaw({ raw: { path, body }, prefix }) {
  const result = await CALLS[path].ask(body, prefix);
  if (result === undefined && READS.includes(path)) return { outcome: 'missing', code: 'KEY_NOT_FOUND' };
  return { outcome: 'ok', raw: result };
}

function unexpressed(call, path, body, prefix) {
  const items = itemsOf(call, body);
  const parts = call.items && call.members ? PARTS.map((part) => body[part] ?? []) : [];
  const odd = Array.isArray(body) === Boolean(call.members) || !parts.every(Array.isArray) || !items.every(isObject);
  if (odd) return `@forge/kvs cannot send such a body to ${path}`;
  for (const [objects, members] of [[Array.isArray(body) ? [] : [body], call.members], [items, call.items]]) {
    const other = objects.flatMap(Object.keys).find((name) => members && !members.includes(name));
    if (other) return `@forge/kvs cannot send ${other} to ${path}`;
  }
  const keys = [...items, body].map((i) => i.key).filter((key) => key !== undefined);
  if (keys.some((key) => typeof key !== 'string' || !key.startsWith(prefix))) return `the app touches no key that does not begin with ${prefix}`;
  const filters = [...items.map(({ conditions }) => conditions), body.filters];
  if (filters.some((filter) => filter !== undefined && !isFilter(filter))) return '@forge/kvs refuses such conditions itself, and sends nothing';
  const { where, options } = body;
  if (where !== undefined && !(Array.isArray(where) && where.length === 1 && isObject(where[0]))) return '@forge/kvs sends one condition of a query';
  if (QUERIES.includes(path) && options !== undefined && !(isObject(options) && Object.keys(options).every((name) => name === 'metadataFields'))) {
    return '@forge/kvs has no options of a query but metadataFields';
  }
  return undefined;
}

// itemsOf gives the single records that a call names in lists.
function itemsOf(call, body) {
  if (Array.isArray(body)) return body;
  return call.items && call.members ? PARTS.flatMap((part) => body[part] ?? []) : [];
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// isFilter tells whether a Filter can be made of conditions: one list, with members.
function isFilter(conditions) {
  const [[operator, list] = [], ...more] = isObject(conditions) ? Object.entries(conditions) : [];
  return more.length === 0 && ['and', 'or'].includes(operator) && Array.isArray(list) && list.length > 0 && list.every(isObject);
}

function filterOf(conditions) {
  const [[operator, list]] = Object.entries(conditions);
  return list.reduce((filter, { property, ...condition }) => filter[operator](property, condition), new Filter());
}

// item gives what a get read as the wire has it: without options the package gives the
// value alone.
function item(key, options, result) {
  return result === undefined || options ? result : { key, value: result };
}

async function transact(body) {
  const transaction = kvs.transact();
  const entityOf = ({ entityName, conditions }) =>
    entityName === undefined && !conditions ? undefined : { entityName, conditions: conditions && filterOf(conditions) };
  for (const i of body.set ?? []) transaction.set(i.key, i.value, entityOf(i), i.options);
  for (const i of body.delete ?? []) transaction.delete(i.key, entityOf(i));
  for (const i of body.check ?? []) transaction.check(i.key, entityOf(i) ?? {});
  await transaction.execute();
}

async function query({ limit, after, where, options }, prefix) {
  let asked = kvs.query(options);
  for (const { property, ...condition } of where ?? []) asked = asked.where(property, condition);
  return page(limited(asked, limit, after), prefix);
}

async function queryEntity({ entityName, indexName, partition, range, filters, sort, cursor, limit, options }, prefix) {
  let asked = kvs.entity(entityName).query(options).index(indexName, { partition });
  if (filters) asked = asked.filters(filterOf(filters));
  if (range) asked = asked.where(range);
  if (sort) asked = asked.sort(sort);
  return page(limited(asked, limit, cursor), prefix);
}

function limited(asked, limit, cursor) {
  if (limit !== undefined) asked = asked.limit(limit);
  return cursor === undefined ? asked : asked.cursor(cursor);
}

// page gives what was found as the wire has it, but no records of others.
async function page(asked, prefix) {
  const { results, nextCursor } = await asked.getMany();
  return { data: results.filter(({ key }) => key.startsWith(prefix)), cursor: nextCursor };
}
