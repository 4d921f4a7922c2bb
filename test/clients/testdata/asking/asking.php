<?php
// Asks the proxy by mysqli and PDO: asking.php EXTENSION HOST PORT USER PASSWORD SCHEMA
[, $extension, $host, $port, $user, $password, $schema] = $argv;
if ($extension === 'mysqli') {
    mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
    $c = new mysqli($host, $user, $password, $schema, (int)$port);
    $c->set_charset('utf8mb4');
    $one = fn($sql) => $c->query($sql)->fetch_assoc();
    $prepared = function ($sql) use ($c) {
        $s = $c->prepare($sql);
        $s->execute();
        return $s->get_result()->fetch_assoc();
    };
} else {
    $c = new PDO("mysql:host=$host;port=$port;dbname=$schema;charset=utf8mb4", $user, $password,
        [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => false]);
    $one = fn($sql) => $c->query($sql)->fetch(PDO::FETCH_ASSOC);
    $prepared = function ($sql) use ($c) {
        $s = $c->prepare($sql);
        $s->execute();
        return $s->fetch(PDO::FETCH_ASSOC);
    };
}
echo 'text ', $one('SHOW SEQPROXY VERSION')['version'], "\n";
echo 'again ', $prepared('SHOW SEQPROXY VERSION')['version'], "\n";
$r = $prepared("SHOW SEQPROXY STATUS LIKE 'drain%'");
printf("status %s %.1f\n", $r['name'], $r['value']);
$stat = $extension === 'mysqli' ? $c->stat() : $c->getAttribute(PDO::ATTR_SERVER_INFO);
if (!str_contains($stat, 'Uptime')) {
    throw new Exception($stat);
}
echo 'session ', $one('SHOW SEQPROXY SESSIONS')['user'], "\n";
echo 'schema ', $prepared('SELECT DATABASE() AS db')['db'], "\n";
