// Asks the proxy by an npm module: asking.mjs MODULE HOST PORT USER PASSWORD SCHEMA
const [module, host, port, user, password, database] = process.argv.slice(2);
const { default: driver } = await import(module === 'mysql2' ? 'mysql2/promise' : module);
const options = { host, port: Number(port), user, password, database };
if (module === 'mariadb') options.allowPublicKeyRetrieval = true;
const c = await driver.createConnection(options);
const rows = (answer) => (module === 'mysql2' ? answer[0] : answer);
console.log('text', rows(await c.query('SHOW SEQPROXY VERSION'))[0].version);
console.log('again', rows(await c.execute('SHOW SEQPROXY VERSION'))[0].version);
const r = rows(await c.execute("SHOW SEQPROXY STATUS LIKE 'drain%'"))[0];
console.log('status', r.name, r.value.toFixed(1));
console.log('session', rows(await c.query('SHOW SEQPROXY SESSIONS'))[0].user);
console.log('schema', rows(await c.execute('SELECT DATABASE() AS db'))[0].db);
await c.ping();
await c.end();
