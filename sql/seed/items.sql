INSERT INTO shop.items (id, owner_id, title, description, price_cents, stock, created_at)
SELECT id,
       1 + pg_temp.pick(hash, 1) % (SELECT pg_temp.rows(10000)),
       pg_temp.word(hash, 2, ARRAY['Amber', 'Brass', 'Cedar', 'Cobalt', 'Copper', 'Cotton', 'Granite', 'Ivory', 'Linen',
           'Maple', 'Oak', 'Olive', 'Pewter', 'Scarlet', 'Slate', 'Walnut'])
           || ' ' ||
           pg_temp.word(hash, 3, ARRAY['armchair', 'basket', 'bookend', 'bowl', 'candlestick', 'clock', 'coat rack',
           'desk', 'doorbell', 'drawer', 'footstool', 'jug', 'kettle', 'lamp', 'lantern', 'mirror', 'picture frame',
           'shelf', 'teapot', 'tray', 'umbrella stand', 'vase', 'wardrobe', 'workbench'])
           || ' no. ' || id,
       CASE WHEN pg_temp.pick(hash, 4) % 8 > 0 THEN
           pg_temp.word(hash, 4, ARRAY['Made by hand in a small workshop', 'Found in an attic and restored with care',
           'Used for one season only', 'One of a set of six', 'A copy of a museum piece', 'Sturdy, simple and plain',
           'Older than it looks'])
           || ', ' ||
           pg_temp.word(hash, 5, ARRAY['with a few marks that tell its story', 'and still as good as new',
           'but the box is missing', 'and ready to be sent tomorrow', 'to be picked up in person',
           'with a spare part included', 'and easy to take apart', 'sold because we are moving'])
           || '. Measures ' || 10 + pg_temp.pick(hash, 1) % 90 || ' by ' || 10 + pg_temp.pick(hash, 2) % 90
           || ' by ' || 5 + pg_temp.pick(hash, 3) % 60 || ' cm.'
       END,
       100 + pg_temp.pick(hash, 5) % 49900,
       pg_temp.pick(hash, 3) % 200,
       timestamptz '2024-01-01 00:00:00+00' + id * interval '311 seconds'
FROM generate_series(1, pg_temp.rows(100000)) AS id, md5('item ' || id) AS hash;
