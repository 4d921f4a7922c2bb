# Rails' ActiveRecord connects: activerecord.rb HOST PORT USER PASSWORD SCHEMA.
require 'active_record'

host, port, user, password, schema = ARGV
ActiveRecord::Base.establish_connection(adapter: 'mysql2', host: host, port: port.to_i, username: user, password: password,
                                        database: schema, encoding: 'utf8mb4')
c = ActiveRecord::Base.connection
c.select_all('SHOW SEQPROXY VERSION')
c.transaction { c.select_all('SHOW SEQPROXY VERSION') }
abort 'not active' unless c.active?
