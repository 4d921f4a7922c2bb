# Asks the proxy by mysql2: asking.rb HOST PORT USER PASSWORD SCHEMA
require 'mysql2'

host, port, user, password, schema = ARGV
c = Mysql2::Client.new(host: host, port: port.to_i, username: user, password: password, database: schema, encoding: 'utf8mb4')
puts "text #{c.query('SHOW SEQPROXY VERSION').first['version']}"
puts "again #{c.prepare('SHOW SEQPROXY VERSION').execute.first['version']}"
r = c.prepare("SHOW SEQPROXY STATUS LIKE 'drain%'").execute.first
puts "status #{r['name']} #{r['value']}"
puts "session #{c.query('SHOW SEQPROXY SESSIONS').first['user']}"
puts "schema #{c.prepare('SELECT DATABASE() AS db').execute.first['db']}"
c.ping or abort 'ping'
