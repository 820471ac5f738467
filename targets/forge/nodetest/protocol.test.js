'use strict';
// Every path of the key-value store, with every option that the package has.
const assert = require('node:assert/strict');
const { after, describe, test } = require('node:test');
const { kvs, Filter, FilterConditions, MetadataField, Sort, WhereConditions } = require('@forge/kvs');

const { CREATED_AT, UPDATED_AT, EXPIRE_TIME } = MetadataField;
const metadataFields = [CREATED_AT, UPDATED_AT, EXPIRE_TIME];
const hour = { value: 1, unit: 'HOURS' };

const paths = new Set();
const hook = globalThis.__forge_fetch__;
globalThis.__forge_fetch__ = (meta, path, init) => {
  paths.add(path);
  return hook(meta, path, init);
};

after(() => {
  assert.deepEqual([...paths].sort(), [
    'batch/delete', 'batch/get', 'batch/set', 'delete', 'entity/delete', 'entity/get', 'entity/query', 'entity/set',
    'get', 'query', 'secret/delete', 'secret/get', 'secret/set', 'set', 'transaction',
  ].map((path) => `/api/v1/${path}`));
});

// isWithin wants a time in milliseconds to lie between two others.
const isWithin = (time, from, to) => assert.ok(from <= time && time <= to, `${time} is not in ${from}…${to}`);

// The three name spaces answer alike.
const book = kvs.entity('book');
for (const [name, space] of Object.entries({
  keys: { get: kvs.get.bind(kvs), set: kvs.set.bind(kvs), delete: kvs.delete.bind(kvs) },
  secrets: { get: kvs.getSecret.bind(kvs), set: kvs.setSecret.bind(kvs), delete: kvs.deleteSecret.bind(kvs) },
  entities: { get: book.get.bind(book), set: book.set.bind(book), delete: book.delete.bind(book) },
})) {
  describe(name, () => {
    const [one, two] = [{ title: 'one' }, { title: 'two' }];

    test('set, get, delete', async () => {
      assert.equal(await space.get('key'), undefined);
      assert.equal(await space.set('key', one), undefined);
      assert.deepEqual(await space.get('key'), one);
      await space.set('key', two);
      assert.deepEqual(await space.get('key'), two);
      assert.equal(await space.delete('key'), undefined);
      assert.equal(await space.get('key'), undefined);
      assert.equal(await space.delete('key'), undefined);
    });

    test('metadata is numbers of milliseconds and an ISO 8601 string', async () => {
      const start = Date.now();
      await space.set('dated', one, { ttl: hour });
      const created = Date.now();
      await space.set('dated', two, { ttl: hour });
      const updated = Date.now();
      const read = await space.get('dated', { metadataFields });
      assert.deepEqual(Object.keys(read), ['key', 'value', 'createdAt', 'updatedAt', 'expireTime']);
      assert.deepEqual([read.key, read.value], ['dated', two]);
      isWithin(read.createdAt, start, created);
      isWithin(read.updatedAt, created, updated);
      assert.match(read.expireTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/);
      isWithin(Date.parse(read.expireTime), created + 3600_000, updated + 3600_000);
    });

    test('metadata comes only where it was asked for', async () => {
      await space.set('asked', one);
      assert.deepEqual(await space.get('asked', {}), { key: 'asked', value: one });
      assert.deepEqual(
        await space.get('asked', { metadataFields: [EXPIRE_TIME] }),
        { key: 'asked', value: one, expireTime: undefined },
      );
    });

    test('every unit of a ttl', async () => {
      for (const [unit, seconds] of Object.entries({ SECONDS: 1, MINUTES: 60, HOURS: 3600, DAYS: 86400 })) {
        const start = Date.now();
        await space.set(unit, one, { ttl: { value: 300, unit } });
        const end = Date.now();
        const { expireTime } = await space.get(unit, { metadataFields: [EXPIRE_TIME] });
        isWithin(Date.parse(expireTime), start + 300_000 * seconds, end + 300_000 * seconds);
      }
    });

    test('both key policies', async () => {
      await space.set('policy', one, { keyPolicy: 'FAIL_IF_EXISTS' });
      await assert.rejects(space.set('policy', two, { keyPolicy: 'FAIL_IF_EXISTS' }), { code: 'KEY_CONFLICT' });
      assert.deepEqual(await space.get('policy'), one);
      await space.set('policy', two, { keyPolicy: 'OVERRIDE' });
      assert.deepEqual(await space.get('policy'), two);
      await space.delete('policy');
      await space.set('policy', one, { keyPolicy: 'FAIL_IF_EXISTS' });
      assert.deepEqual(await space.get('policy'), one);
    });

    test('both return values', async () => {
      const returning = (returnValue, more) => ({ keyPolicy: 'OVERRIDE', returnValue, ...more });
      assert.equal(await space.set('returned', one, returning('PREVIOUS')), undefined);
      assert.deepEqual(await space.set('returned', two, returning('PREVIOUS')), { key: 'returned', value: one });
      const latest = await space.set(
        'returned', one, returning('LATEST', { ttl: hour, returnMetadataFields: metadataFields }),
      );
      assert.deepEqual(latest, await space.get('returned', { metadataFields }));
      assert.deepEqual(latest.value, one);
    });
  });
}

test('the name spaces are separate', async () => {
  await kvs.set('shared', 'plain');
  await kvs.setSecret('shared', 'secret');
  await book.set('shared', { title: 'entity' });
  await kvs.deleteSecret('shared');
  assert.equal(await kvs.get('shared'), 'plain');
  assert.equal(await kvs.getSecret('shared'), undefined);
  assert.deepEqual(await book.get('shared'), { title: 'entity' });
});

test('every kind of JSON value', async () => {
  for (const value of ['ä\u0000"\\😀', '', 0, -1.5e-7, true, false, [], [[1], { a: null }], {}, { '': { b: [1] } }]) {
    await kvs.set('json', value);
    assert.deepEqual(await kvs.get('json'), value);
  }
});

// pages reads a query to its end and gives the keys of each page.
async function pages(query) {
  const all = [];
  for (let cursor; ;) {
    const builder = query();
    if (cursor !== undefined) builder.cursor(cursor);
    const { results, nextCursor } = await builder.getMany();
    all.push(results.map(({ key }) => key));
    if (nextCursor === undefined) return all;
    cursor = nextCursor;
  }
}

describe('query', () => {
  const keys = ['q:1', 'q:2', 'q:3', 'q:4', 'q:5'];
  const prefixed = () => kvs.query().where('key', WhereConditions.beginsWith('q:'));

  test('begins with', async () => {
    for (const key of [...keys, 'other']) await kvs.set(key, `value of ${key}`);
    const { results, nextCursor } = await prefixed().getMany();
    assert.deepEqual(results, keys.map((key) => ({ key, value: `value of ${key}` })));
    assert.equal(nextCursor, undefined);
  });

  test('limit and cursor walk over every key once', async () => {
    const found = await pages(() => prefixed().limit(2));
    assert.deepEqual(found.flat(), keys);
    assert.ok(found.every((page) => page.length <= 2), JSON.stringify(found));
  });

  test('getOne', async () => {
    assert.deepEqual(await prefixed().getOne(), { key: 'q:1', value: 'value of q:1' });
    assert.equal(await kvs.query().where('key', WhereConditions.beginsWith('absent')).getOne(), undefined);
  });

  test('options of the call, with metadata', async () => {
    const where = [{ property: 'key', ...WhereConditions.beginsWith('q:') }];
    const { results: [first, ...others] } = await kvs.query({ where, limit: 1, metadataFields }).getMany();
    const { expireTime, ...stored } = await kvs.get('q:1', { metadataFields });
    assert.equal(expireTime, undefined);
    assert.deepEqual(first, stored);
    assert.deepEqual(others, []);
  });

  test('without where it gives neither secrets nor entities', async () => {
    await kvs.setSecret('q:secret', 'secret');
    await book.set('q:book', { title: 'entity' });
    const found = (await pages(() => kvs.query().limit(10))).flat();
    assert.ok(found.includes('other') && found.includes('q:5'), JSON.stringify(found));
    assert.ok(!found.includes('q:secret') && !found.includes('q:book'), JSON.stringify(found));
  });
});

describe('entity query', () => {
  // By author and year: a1 a2 a3, b1; each in the index by year too.
  const shelf = {
    a2: { title: 'Second', author: 'ann', year: 1990, price: 5.5 },
    b1: { title: 'First', author: 'bob', year: 1985, price: 7, lent: true },
    a3: { title: 'Third', author: 'ann', year: 2000, price: 9, lent: false },
    a1: { title: 'First', author: 'ann', year: 1980, price: 3, lent: true },
  };
  const by = (index, options) => kvs.entity('book').query().index(index, options);
  const byAnn = () => by('by-author', { partition: ['ann'] });
  const keysOf = async (query) => (await query.getMany()).results.map(({ key }) => key);

  test('an index is in the order of its range', async () => {
    for (const [key, value] of Object.entries(shelf)) await book.set(key, value);
    const { results, nextCursor } = await by('year').getMany();
    assert.deepEqual(results, ['a1', 'b1', 'a2', 'a3'].map((key) => ({ key, value: shelf[key] })));
    assert.equal(nextCursor, undefined);
  });

  test('sort', async () => {
    assert.deepEqual(await keysOf(by('year').sort(Sort.ASC)), ['a1', 'b1', 'a2', 'a3']);
    assert.deepEqual(await keysOf(by('year').sort(Sort.DESC)), ['a3', 'a2', 'b1', 'a1']);
  });

  test('partition', async () => {
    assert.deepEqual(await keysOf(byAnn()), ['a1', 'a2', 'a3']);
    assert.deepEqual(await keysOf(by('by-author', { partition: ['eve'] })), []);
  });

  test('every condition of a range', async () => {
    for (const [condition, want] of [
      [WhereConditions.equalTo(1990), ['a2']],
      [WhereConditions.greaterThan(1990), ['a3']],
      [WhereConditions.greaterThanEqualTo(1990), ['a2', 'a3']],
      [WhereConditions.lessThan(1990), ['a1']],
      [WhereConditions.lessThanEqualTo(1990), ['a1', 'a2']],
      [WhereConditions.between(1980, 1990), ['a1', 'a2']],
    ]) {
      assert.deepEqual(await keysOf(byAnn().where(condition)), want, condition.condition);
    }
    await kvs.entity('lease').set('l1', { holder: 'ann' });
    await kvs.entity('lease').set('l2', { holder: 'bob' });
    const byHolder = kvs.entity('lease').query().index('by-holder').where(WhereConditions.beginsWith('an'));
    assert.deepEqual(await keysOf(byHolder), ['l1']);
  });

  test('every condition of a filter', async () => {
    for (const [property, condition, want] of [
      ['title', FilterConditions.equalTo('First'), ['a1', 'b1']],
      ['title', FilterConditions.notEqualTo('First'), ['a2', 'a3']],
      ['title', FilterConditions.beginsWith('Th'), ['a3']],
      ['title', FilterConditions.contains('ir'), ['a1', 'b1', 'a3']],
      ['title', FilterConditions.notContains('ir'), ['a2']],
      ['lent', FilterConditions.exists(), ['a1', 'b1', 'a3']],
      ['lent', FilterConditions.notExists(), ['a2']],
      ['lent', FilterConditions.equalTo(true), ['a1', 'b1']],
      ['price', FilterConditions.greaterThan(5.5), ['b1', 'a3']],
      ['price', FilterConditions.greaterThanEqualTo(5.5), ['b1', 'a2', 'a3']],
      ['price', FilterConditions.lessThan(5.5), ['a1']],
      ['price', FilterConditions.lessThanEqualTo(5.5), ['a1', 'a2']],
      ['price', FilterConditions.between(5.5, 7), ['b1', 'a2']],
    ]) {
      const query = by('year').filters(new Filter().and(property, condition));
      assert.deepEqual(await keysOf(query), want, `${property} ${condition.condition}`);
    }
  });

  test('filters with and, and with or', async () => {
    const [second, lent] = [FilterConditions.equalTo('Second'), FilterConditions.equalTo(true)];
    assert.deepEqual(await keysOf(by('year').filters(new Filter().and('title', second).and('lent', lent))), []);
    assert.deepEqual(
      await keysOf(by('year').filters(new Filter().or('title', second).or('lent', lent))), ['a1', 'b1', 'a2'],
    );
  });

  test('limit and cursor walk over every record once', async () => {
    for (const [sort, want] of [[Sort.ASC, ['a1', 'a2', 'a3']], [Sort.DESC, ['a3', 'a2', 'a1']]]) {
      const found = await pages(() => byAnn().sort(sort).limit(2));
      assert.deepEqual(found.flat(), want);
      assert.ok(found.every((page) => page.length <= 2), JSON.stringify(found));
    }
  });

  test('partition, range, filters and sort together', async () => {
    const query = byAnn()
      .where(WhereConditions.lessThan(2000))
      .filters(new Filter().and('price', FilterConditions.greaterThan(1)))
      .sort(Sort.DESC);
    assert.deepEqual(await keysOf(query), ['a2', 'a1']);
  });

  test('getOne, with metadata', async () => {
    const one = await kvs.entity('book').query({ metadataFields }).index('year').getOne();
    const { expireTime, ...stored } = await book.get('a1', { metadataFields });
    assert.equal(expireTime, undefined);
    assert.deepEqual(one, stored);
    assert.equal(await byAnn().where(WhereConditions.equalTo(1)).getOne(), undefined);
  });
});

describe('batch', () => {
  const named = { key: 'batch', entityName: 'book' };

  test('set, get and delete, keys and entities together', async () => {
    assert.deepEqual(
      await kvs.batchSet([{ key: 'batch', value: 1, options: { ttl: hour } }, { ...named, value: { title: 'one' } }]),
      { successfulKeys: [{ key: 'batch' }, named], failedKeys: [] },
    );
    const { expireTime } = await kvs.get('batch', { metadataFields: [EXPIRE_TIME] });
    assert.ok(Date.parse(expireTime) > 0, expireTime);
    assert.deepEqual(
      await kvs.batchGet([{ key: 'batch' }, named]),
      { successfulKeys: [{ key: 'batch', value: 1 }, { ...named, value: { title: 'one' } }], failedKeys: [] },
    );
    const { successfulKeys: [dated] } = await kvs.batchGet([{ key: 'batch', options: { metadataFields } }]);
    assert.deepEqual(dated, await kvs.get('batch', { metadataFields }));
    assert.deepEqual(
      await kvs.batchDelete([{ key: 'batch' }, named]), { successfulKeys: [{ key: 'batch' }, named], failedKeys: [] },
    );
    assert.equal(await kvs.get('batch'), undefined);
    assert.equal(await book.get('batch'), undefined);
  });

  test('an item that fails leaves the others', async () => {
    const { successfulKeys, failedKeys } = await kvs.batchSet([
      { key: 'batch good', value: 1 }, { key: 'batch bad', entityName: 'book', value: { year: 'no number' } },
    ]);
    assert.deepEqual(successfulKeys, [{ key: 'batch good' }]);
    assert.deepEqual(failedKeys, [{
      key: 'batch bad',
      entityName: 'book',
      error: {
        code: 'INCORRECT_PROPERTY_TYPE', message: 'Data type for property "year" is defined as "integer"',
      },
    }]);
    assert.equal(await kvs.get('batch good'), 1);
  });
});

describe('transaction', () => {
  const titled = (title) => ({
    entityName: 'book', conditions: new Filter().and('title', FilterConditions.equalTo(title)),
  });

  test('set, delete and check land together', async () => {
    await book.set('checked', { title: 'checked' });
    await book.set('deleted', { title: 'deleted' });
    await kvs.set('deleted', 'plain');
    const transaction = kvs.transact()
      .set('set', 'plain', undefined, { ttl: hour })
      .set('set', { title: 'set' }, { entityName: 'book' })
      .delete('deleted')
      .delete('deleted', titled('deleted'))
      .check('checked', titled('checked'));
    assert.equal(await transaction.execute(), undefined);
    const { value, expireTime } = await kvs.get('set', { metadataFields: [EXPIRE_TIME] });
    assert.equal(value, 'plain');
    assert.ok(Date.parse(expireTime) > 0, expireTime);
    assert.deepEqual(await book.get('set'), { title: 'set' });
    assert.equal(await kvs.get('deleted'), undefined);
    assert.equal(await book.get('deleted'), undefined);
    assert.deepEqual(await book.get('checked'), { title: 'checked' });
  });

  test('a condition of whatever operation lets nothing land', async () => {
    await book.set('guarded', { title: 'kept' });
    for (const operation of [
      (transaction) => transaction.set('guarded', { title: 'lost' }, titled('other')),
      (transaction) => transaction.delete('guarded', titled('other')),
      (transaction) => transaction.check('guarded', titled('other')),
    ]) {
      await assert.rejects(
        operation(kvs.transact().set('beside', 1)).execute(), { code: 'CONDITIONAL_CHECK_FAILED' },
      );
      assert.equal(await kvs.get('beside'), undefined);
      assert.deepEqual(await book.get('guarded'), { title: 'kept' });
    }
  });

  test('all twelve conditions', async () => {
    assert.equal(Object.keys(FilterConditions).length, 12);
    const tried = new Set();
    for (const [name, property, holds, fails] of [
      ['equalTo', 'year', [1990], [1991]],
      ['notEqualTo', 'year', [1991], [1990]],
      ['exists', 'title', [], null],
      ['exists', 'lent', null, []],
      ['notExists', 'lent', [], null],
      ['notExists', 'title', null, []],
      ['greaterThan', 'year', [1989], [1990]],
      ['greaterThanEqualTo', 'year', [1990], [1991]],
      ['lessThan', 'price', [5.6], [5.5]],
      ['lessThanEqualTo', 'price', [5.5], [5.4]],
      ['between', 'year', [1990, 1991], [1991, 2000]],
      ['beginsWith', 'title', ['Sec'], ['ec']],
      ['contains', 'title', ['con'], ['nope']],
      ['notContains', 'title', ['nope'], ['con']],
    ]) {
      tried.add(name);
      const attempt = async (values) => {
        await book.set('condition', { title: 'Second', year: 1990, price: 5.5 });
        const conditions = new Filter().and(property, FilterConditions[name](...values));
        await kvs.transact().set('condition', { title: 'landed' }, { entityName: 'book', conditions }).execute();
        assert.deepEqual(await book.get('condition'), { title: 'landed' });
      };
      if (holds) await attempt(holds);
      if (fails) await assert.rejects(attempt(fails), { code: 'CONDITIONAL_CHECK_FAILED' }, name);
    }
    assert.deepEqual([...tried].sort(), Object.keys(FilterConditions).sort());
  });

  test('and wants every condition, or wants one', async () => {
    await book.set('logic', { title: 'logic', year: 1 });
    const { equalTo } = FilterConditions;
    const check = (conditions) => kvs.transact().check('logic', { entityName: 'book', conditions }).execute();
    const failed = { code: 'CONDITIONAL_CHECK_FAILED' };
    await check(new Filter().and('title', equalTo('logic')).and('year', equalTo(1)));
    await assert.rejects(check(new Filter().and('title', equalTo('logic')).and('year', equalTo(2))), failed);
    await check(new Filter().or('title', equalTo('other')).or('year', equalTo(1)));
    await assert.rejects(check(new Filter().or('title', equalTo('other')).or('year', equalTo(2))), failed);
  });

  test('notExists holds where the record is absent (an assumption)', async () => {
    const absent = { entityName: 'book', conditions: new Filter().and('title', FilterConditions.notExists()) };
    await kvs.transact().set('created', { title: 'created' }, absent).execute();
    assert.deepEqual(await book.get('created'), { title: 'created' });
  });
});
