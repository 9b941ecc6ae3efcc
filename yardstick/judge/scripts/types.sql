CREATE TABLE entry(id INTEGER PRIMARY KEY, word TEXT, body TEXT);
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 60000)
INSERT INTO entry SELECT n, substr('abcdefghijklmnop', 1 + n % 13, 1 + n % 4),
    json_object('n', n, 'list', json_array(n % 7, n % 11, hex(n * 7919))) FROM number;
CREATE INDEX entry_word ON entry(word, json_extract(body, '$.n'));
SELECT word, count(*), sum(json_extract(body, '$.list[1]')) FROM entry GROUP BY word ORDER BY 1;
SELECT length(json_group_array(body)) FROM entry WHERE id % 2;
SELECT count(DISTINCT upper(word) || json_extract(body, '$.list[2]')) FROM entry;
UPDATE entry SET body = json_set(body, '$.more', word || body) WHERE id % 3 = 0;
DELETE FROM entry WHERE id % 4 = 1;
SELECT count(*), sum(length(body)) FROM entry;
