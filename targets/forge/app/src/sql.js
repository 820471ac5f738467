// Forge SQL as a store: one table, one statement a call.

import { sql } from '@forge/sql';
import { milliseconds, rfc3339 } from './storage.js';

// The collation tells upper from lower case, as keys do. Columns are wide enough for
// whatever passes misfit.
const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS contend_records (
  k VARCHAR(500) NOT NULL PRIMARY KEY, token VARCHAR(500) NOT NULL, version INT NOT NULL,
  updated_at BIGINT, expires_at BIGINT, body MEDIUMTEXT
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`;

const COLUMNS = 'contend_records (k, token, version, updated_at, expires_at, body) VALUES (?, ?, ?, ?, ?, ?)';

const READ = 'SELECT token, version, updated_at, expires_at, body FROM contend_records WHERE k = ?';
const DELETE = 'DELETE FROM contend_records WHERE k = ?';
const CREATE = `INSERT IGNORE INTO ${COLUMNS}`;
const PUT = `INSERT INTO ${COLUMNS} ON DUPLICATE KEY UPDATE token = VALUES(token), version = VALUES(version),
  updated_at = VALUES(updated_at), expires_at = VALUES(expires_at), body = VALUES(body)`;
// It always changes a column: MySQL counts a row that stays as it was as not affected.
const UPDATE = `UPDATE contend_records SET version = version + 1, token = ?, updated_at = ?, expires_at = ?, body = ?
  WHERE k = ? AND version = ?`;
const MODIFY = `UPDATE contend_records SET version = ?, token = ?, updated_at = ?, expires_at = ?, body = ?
  WHERE k = ? AND updated_at = ?`;
const PAGE = 100;
const LIST = `SELECT k FROM contend_records WHERE k > ? AND LOCATE(?, k) = 1 ORDER BY k LIMIT ${PAGE}`;

const ANSWERS = [
  { status: 429, outcome: 'throttled' }, // Forge quota documentation
  { code: '9007', outcome: 'aborted' }, // TiDB, error codes: a write conflict, the transaction had no effect
  { code: '1213', outcome: 'aborted' }, // MySQL and TiDB, error codes: a deadlock, the transaction was rolled back
  { code: 'SQL_EXECUTION_ERROR', outcome: 'invalid' }, // Forge SQL documentation: incorrect, or refused by the database
  { code: 'QUERY_TIMED_OUT', outcome: 'unknown' }, // Forge SQL documentation: the database goes on with it
  { code: 'INVALID_SQL_QUERY', outcome: 'invalid' }, // Forge SQL documentation
  { code: 'APP_NOT_ENABLED', outcome: 'invalid' }, // @forge/sql 4.0.8, by its name: the app has no database
  { code: 'SQL_POLICY_VIOLATION', outcome: 'invalid' }, // the platform, by its name
];

// CONFLICTS are refusals for contention that come as SQL_EXECUTION_ERROR. How the
// platform shows the database's error is not documented, so it is looked for in the
// text and in whatever else came.
const CONFLICTS = [
  ['9007', /"errno":9007\b|\b(Error |kv:)9007\b|Write conflict, txnStartTS/],
  ['1213', /"errno":1213\b|\bError 1213\b|Deadlock found when trying to get lock/],
];

const GREATEST_INT = 2 ** 31 - 1;

// In an isolate the table is made once; where that failed, the next op tries again.
let table;

export const sqlStore = {
  package: '@forge/sql', // which does not tell its version
  answers: ANSWERS,
  codeOf,
  refuse(op) {
    if (op.ttl > 0) return { outcome: 'unsupported', message: 'a row of Forge SQL has no expiry of its own; leave the TTL out' };
    if (op.kind === 'renew' || op.guard === 'token' || (op.kind === 'delete' && op.guard)) {
      return { outcome: 'unsupported', message: 'there is no such condition in Forge SQL; choose create=entity or create=transact' };
    }
    if (op.kind === 'write' && misfit(op)) {
      return { outcome: 'invalid', code: 'out-of-range', message: 'a key or token of more than 500 characters, or a version of more than 32 bits' };
    }
    return undefined;
  },
  async ready() {
    table ??= sql.executeDDL(CREATE_TABLE).catch((error) => {
      table = undefined;
      throw error;
    });
    await table;
  },
  async ask(op) {
    const { rows } = await execute(...statementOf(op));
    if (op.kind === 'read') return Array.isArray(rows) ? found(rows[0]) : unreadable;
    if (!Number.isInteger(rows?.affectedRows)) return unreadable;
    if (op.guard && rows.affectedRows === 0) return { outcome: 'conflict', code: '0 rows', status: 200 };
    // A PUT that replaces a row counts it twice, and not at all where it stays the same.
    return rows.affectedRows >= 0 && rows.affectedRows <= (op.guard ? 1 : 2) ? { outcome: 'ok' } : unreadable;
  },
};

// listSql gives a page of keys that begin with a prefix, and a cursor, the last key,
// where there may be more.
export async function listSql({ prefix, cursor = '' }) {
  const { rows } = await execute(LIST, cursor, prefix);
  const keys = rows.map((row) => row.k);
  return { keys, cursor: keys.length === PAGE ? keys.at(-1) : undefined };
}

async function execute(statement, ...params) {
  return (await sql.prepare(statement).bindParams(...params).execute()) ?? {};
}

function statementOf({ kind, key, value, guard, counter, unmodified }) {
  if (kind === 'read') return [READ, key];
  if (kind === 'delete') return [DELETE, key];
  const { token, version, updated_at, expires_at, body } = value;
  const rest = [milliseconds(updated_at) ?? null, milliseconds(expires_at) ?? null, body === undefined ? null : JSON.stringify(body)];
  if (guard === 'version') return [UPDATE, token, ...rest, key, counter];
  if (guard === 'unmodified') return [MODIFY, version, token, ...rest, key, milliseconds(unmodified)];
  return [guard === 'absent' ? CREATE : PUT, key, token, version, ...rest];
}

// misfit tells what INSERT IGNORE would cut to the width of its column, without a word.
function misfit({ key, value: { token, version } }) {
  return key.length > 500 || token.length > 500 || Math.abs(version) > GREATEST_INT;
}

// unreadable is a success that does not tell what it did.
const unreadable = { outcome: 'unmapped', code: 'unexpected', status: 200, message: "the answer is not in Forge SQL's shape" };

function found(row) {
  if (row === undefined) return { outcome: 'missing', code: '0 rows', status: 200 };
  const { token, version, updated_at, expires_at, body } = row;
  const time = (stored) => rfc3339(stored === null ? undefined : Number(stored));
  return {
    outcome: 'ok',
    record: { token, version, updated_at: time(updated_at), expires_at: time(expires_at), body: body === null ? undefined : JSON.parse(body) },
  };
}

// codeOf gives the database's own number for a known conflict.
function codeOf(error) {
  const { name, code, message, context } = error;
  if (code === 'SQL_EXECUTION_ERROR') {
    const told = `${message} ${JSON.stringify(context)}`;
    return CONFLICTS.find(([, sign]) => sign.test(told))?.[0] ?? code;
  }
  // An answer that is not JSON is an error without a code.
  return code ?? (name === 'ForgeSQLError' ? 'UNKNOWN_ERROR' : undefined);
}
