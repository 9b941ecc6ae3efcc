-- Tables made by arithmetic alone, so that every run has the same rows in the same order.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE TABLE part(id int PRIMARY KEY, kind text, size int, tags text[], body jsonb);
INSERT INTO part
    SELECT n, 'kind' || n % 37, (n::bigint * 7919 % 100003)::int, ARRAY['t' || n % 5, 't' || n % 11],
           jsonb_build_object('n', n, 'name', repeat(md5(n::text), 1 + n % 4), 'list', jsonb_build_array(n % 3, n % 7))
    FROM generate_series(1, 60000) n;
CREATE TABLE use(part int, amount numeric(12, 3), at date);
INSERT INTO use
    SELECT 1 + (n::bigint * 104729 % 60000)::int, n % 1000 / 8.0, date '2001-01-01' + n % 3000
    FROM generate_series(1, 80000) n;
CREATE INDEX part_kind ON part(kind, size);
CREATE INDEX part_tags ON part USING gin(tags);
CREATE INDEX part_body ON part USING gin(body jsonb_path_ops);
CREATE INDEX use_part ON use(part);
ANALYZE;
SELECT kind, count(*), sum(size), md5(string_agg(id::text, ',' ORDER BY id)) FROM part GROUP BY kind ORDER BY kind;
SELECT p.kind, sum(u.amount), count(DISTINCT u.at) FROM part p JOIN use u ON u.part = p.id
    GROUP BY p.kind ORDER BY 2 DESC, 1;
SELECT count(*) FROM part WHERE tags @> ARRAY['t3', 't7'];
SELECT count(*), sum((body->>'n')::int) FROM part WHERE body @> '{"list": [2, 5]}';
SELECT md5(string_agg(line, '|' ORDER BY line)) FROM
    (SELECT regexp_replace(body->>'name', '([a-f]+)([0-9]+)', '\2-\1', 'g') AS line FROM part WHERE id % 3 = 0) t;
SELECT id, size, rank() OVER (PARTITION BY kind ORDER BY size DESC, id) FROM part ORDER BY 3, 1 LIMIT 40;
WITH RECURSIVE walk(id, depth) AS (
    SELECT 1, 0 UNION ALL SELECT (id::bigint * 31 % 60000 + 1)::int, depth + 1 FROM walk WHERE depth < 5000)
    SELECT count(DISTINCT id), sum(id) FROM walk;
CREATE FUNCTION shorten(words text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE word text; result text := '';
BEGIN
    FOREACH word IN ARRAY regexp_split_to_array(words, '[0-9]+') LOOP
        result := result || substr(word, 1, 2);
    END LOOP;
    RETURN result;
END $$;
SELECT md5(string_agg(shorten(body->>'name'), ',' ORDER BY id)) FROM part WHERE id % 4 = 0;
UPDATE part SET body = body || '{"changed": true}' WHERE id % 10 = 0;
DELETE FROM use WHERE at < '2003-01-01';
SELECT xmlelement(name root, xmlagg(xmlelement(name part, xmlattributes(id, kind)) ORDER BY id))::text ~ 'kind36' FROM part WHERE id < 20000;
