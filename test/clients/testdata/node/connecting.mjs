// Sequelize connects: connecting.mjs HOST PORT USER PASSWORD SCHEMA.
import { Sequelize } from 'sequelize';

const [host, port, user, password, schema] = process.argv.slice(2);
const db = new Sequelize(schema, user, password, { host, port: Number(port), dialect: 'mysql', logging: false });
await db.query('SHOW SEQPROXY VERSION');
await db.transaction((transaction) => db.query('SHOW SEQPROXY VERSION', { transaction }));
await db.close();
