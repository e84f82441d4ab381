INSERT INTO shop.comments (id, item_id, user_id, body, created_at)
SELECT id,
       1 + pg_temp.pick(hash, 1) % (SELECT pg_temp.rows(100000)),
       1 + pg_temp.pick(hash, 2) % (SELECT pg_temp.rows(10000)),
       pg_temp.word(hash, 3, ARRAY['Is this still available?', 'Lovely colour.', 'Mine arrived yesterday.',
           'A fair price, I think.', 'I have been looking for one of these.', 'My sister has the same one.',
           'Would you take a little less?', 'Could you post a picture of the back?'])
           || ' ' ||
           pg_temp.word(hash, 4, ARRAY['I could collect it on Saturday.', 'Does it come with a warranty?',
           'The handle looks worn, though.', 'It is smaller than I expected.', 'Thanks for the quick answer!',
           'Please keep it for me.', 'I would buy it again.', 'How heavy is it?']),
       timestamptz '2025-01-01 00:00:00+00' + id * interval '97 seconds'
FROM generate_series(1, pg_temp.rows(300000)) AS id, md5('comment ' || id) AS hash;
