// The generated keys of mysql2 and mariadb: keys.mjs DRIVER HOST PORT USER PASSWORD SCHEMA [KEY]
const [driver, host, port, user, password, database, key = ''] = process.argv.slice(2);
const options = { host, port: Number(port), user, password, database };

const drivers = {
  async mysql2() {
    const c = await (await import('mysql2/promise')).default.createConnection({ ...options, supportBigNumbers: true });
    return {
      write: async (sql) => (await c.query(sql))[0].insertId,
      execute: async (sql, values) => (await c.execute(sql, values))[0].insertId,
      rows: async (sql) => (await c.query({ sql, rowsAsArray: true }))[0],
      close: () => c.end(),
    };
  },
  async mariadb() {
    const c = await (await import('mariadb')).default.createConnection({ ...options, allowPublicKeyRetrieval: true });
    return {
      write: async (sql) => (await c.query(sql)).insertId,
      execute: async (sql, values) => (await c.execute(sql, values)).insertId,
      rows: (sql) => c.query({ sql, rowsAsArray: true }),
      batch: (sql, values) => c.batch(sql, values),
      close: () => c.end(),
    };
  },
};
const c = await drivers[driver]();

const insert = (...titles) => `INSERT INTO photos (${key && 'id, '}title) VALUES ${titles.map((t) => `(${key && `${key}, `}${t})`).join(', ')}`;

// The drivers tell the first key; programs count on from it.
async function step(name, first, ...titles) {
  const rows = await c.rows(`SELECT id, title FROM photos WHERE title IN ('${titles.join("', '")}') ORDER BY id`);
  const told = titles.map((t, i) => [String(Number(first) + i), t]);
  console.log(JSON.stringify({ step: name, value: [told, rows.map((r) => r.map(String))] }));
}

await step('text', await c.write(insert("'a'")), 'a');
await step('prepared', await c.execute(insert('?'), ['b']), 'b');
await step('rows in a text', await c.write(insert("'c'", "'d'", "'e'")), 'c', 'd', 'e');
await step('rows prepared', await c.execute(insert('?', '?', '?'), ['f', 'g', 'h']), 'f', 'g', 'h');
await step('function', (await c.rows('SELECT LAST_INSERT_ID()'))[0][0], 'f');
if (c.batch && !key) {
  // The rows go in one packet: keys of which the server does not know that they were made are not told as such.
  const titles = ['i', 'j', 'k'];
  const told = await c.batch(insert('?'), titles.map((t) => [t]));
  if (Array.isArray(told)) {
    for (const [n, { insertId }] of told.entries()) await step(`batch, row ${n}`, insertId, titles[n]);
  } else {
    await step('batch', told.insertId, ...titles);
  }
}
await step('found', await c.execute(`${insert('?')} ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)`, ['c']), 'c');
await c.close();
