-- A data sheet each, of about 4 KiB. A tag is one of 192, and about 104 of 5,000 documents hold it.
INSERT INTO shop.document_originals (id, body, checksum)
SELECT id, body, md5((body - 'stock')::text)
FROM generate_series(1, pg_temp.rows(5000)) AS id,
     LATERAL (SELECT md5('document ' || id)) AS of_document (hash),
     (SELECT ARRAY[
         'The frame is of solid wood, planed on the long sides and left as the saw made it where nobody will look. The '
         'joints are cut by hand and held by pegs, so that the piece can be taken apart with a mallet, moved through a '
         'narrow door, and put together again in an afternoon. A drawing of every part lies in the drawer. It names the '
         'parts in the order in which they are needed, which is not the order in which they are packed.',
         'Before it was offered for sale it stood in our workshop for a winter, next to the stove and under the window, '
         'since wood that is going to crack does so in its first winter indoors. This one did not. Where the grain had '
         'risen it was rubbed down and oiled twice; the oil is made of linseed and nothing else, and smells of it for a '
         'week or so. Wipe it with a dry cloth, or with a damp one and then a dry one, and keep it out of the sun.',
         'Measured in a room at twenty degrees. Wood grows and shrinks with the weather, across the grain more than '
         'along it, and a drawer that runs smoothly in January may want some wax in August. Whoever needs it to the '
         'millimetre should write to us first: we measure the very piece that we are going to send, at the place that '
         'matters, and say how far we trust the figure. Everything else on this sheet was measured on one piece of ten.',
         'The metal parts are of brass that was cast, turned and left without lacquer. They darken where hands do not '
         'reach and stay bright where they do, which is how one knows after some years what a thing is really used for. '
         'Whoever prefers them bright all over can polish them with vinegar and salt. Screws have a plain slot and fit '
         'into the holes that were there before: where an older screw was replaced, the old one is in a small bag.',
         'It is sent in a box that is meant to come back to us. Two people can carry it, one cannot, however strong. '
         'Please unpack it on the day on which it arrives, look at the corners first, and tell us at once if something '
         'is broken, with a picture if that is easy. We would rather send a part twice than have somebody live with a '
         'dent, and we keep spare parts of everything that left the workshop, sorted by the batch at the end of this '
         'sheet, for ten years at least.',
         'People ask whether it can be had in another size. Mostly, yes: the length is free within a hand or two, the '
         'height follows from the use, and only the depth is fixed by the tools that we have. It takes six weeks from '
         'the first letter to the day on which it is sent, or eight in summer, and costs about a fifth more. What was '
         'made to measure is taken back like everything else, as long as it can still be recognised.'
     ]) AS of_paragraphs (paragraphs),
     LATERAL (
         SELECT jsonb_agg((ARRAY['bath', 'cellar', 'garden', 'hall', 'kitchen', 'nursery', 'office', 'porch'])[1 + number % 8]
                    || '-' ||
                    (ARRAY['antique', 'ash', 'bamboo', 'brass', 'carved', 'ceramic', 'copper', 'elm', 'enamel', 'felt',
                        'folding', 'glass', 'iron', 'leather', 'linen', 'oak', 'painted', 'pine', 'steel', 'stone', 'striped',
                        'teak', 'wicker', 'wool'])[1 + number / 8 % 24]
                ORDER BY n)
         FROM generate_series(1, 4) AS n, LATERAL (SELECT pg_temp.pick(hash, n)) AS of_tag (number)
     ) AS of_tags (tags),
     LATERAL (
         SELECT jsonb_agg(jsonb_build_object(
                    'user', 'user' || 1 + number % (SELECT pg_temp.rows(10000)),
                    'stars', 1 + number / 16 % 5,
                    'helpful', number / 128 % 4 = 0,
                    'text', (ARRAY['Exactly as pictured.', 'Smaller than I thought.',
                        'Arrived with a scratch, and was replaced.', 'We use it every day.', 'Heavy, but worth it.'])
                        [1 + number / 1024 % 5])
                ORDER BY n)
         FROM generate_series(1, 5) AS n, LATERAL (SELECT pg_temp.pick(reverse(hash), n)) AS of_review (number)
     ) AS of_reviews (reviews),
     LATERAL (
         SELECT jsonb_build_object(
             'title', 'Data sheet no. ' || id,
             'sku', upper(substr(hash, 1, 12)),
             'stock', pg_temp.pick(hash, 1) % 200,
             'tags', tags,
             'price', jsonb_build_object('amount_cents', 100 + pg_temp.pick(hash, 2) % 49900, 'currency', 'EUR',
                 'reduced', pg_temp.pick(hash, 3) % 8 = 0),
             'maker', jsonb_build_object('name', pg_temp.word(hash, 4, ARRAY['Björk & Söhne', 'Casa Lume', 'Deller Bros.',
                 'Ateliers d''Été', 'Nordlys', 'O''Hara "Woodworks"', 'Piękno', 'Sato 工房']),
                 'address', jsonb_build_object('street', pg_temp.pick(hash, 5) % 120 + 1 || ' Mill Lane',
                     'postcode', lpad((pg_temp.pick(hash, 1) % 100000)::text, 5, '0'), 'floor', NULL)),
             'size', jsonb_build_object('width_cm', 10 + pg_temp.pick(hash, 2) % 90, 'height_cm',
                 10 + pg_temp.pick(hash, 3) % 90, 'weight_kg', pg_temp.pick(hash, 4) % 400 * 0.125),
             'reviews', reviews,
             'text', array_to_string(ARRAY[pg_temp.word(hash, 1, paragraphs), pg_temp.word(hash, 2, paragraphs),
                 pg_temp.word(hash, 3, paragraphs), pg_temp.word(hash, 4, paragraphs),
                 pg_temp.word(reverse(hash), 1, paragraphs), pg_temp.word(reverse(hash), 2, paragraphs),
                 pg_temp.word(reverse(hash), 3, paragraphs), 'Batch ' || hash], E'\n\n'))
         OFFSET 0  -- computed once, although it is used twice
     ) AS of_body (body);
