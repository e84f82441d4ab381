INSERT INTO shop.users (id, name, email, created_at)
SELECT id,
       pg_temp.word(hash, 1, ARRAY['Ada', 'Bilal', 'Chloe', 'Dmitri', 'Esra', 'Femi', 'Greta', 'Hugo', 'Ines', 'Jun',
           'Kofi', 'Lena', 'Mateo', 'Nora', 'Oskar', 'Priya', 'Quentin', 'Rosa', 'Samir', 'Tove', 'Uma', 'Viktor',
           'Wanda', 'Yusuf'])
           || ' ' ||
           pg_temp.word(hash, 2, ARRAY['Abara', 'Berg', 'Castillo', 'Dubois', 'Eriksen', 'Fontana', 'Gruber',
           'Haddad', 'Ivanov', 'Jansen', 'Kowalski', 'Lindqvist', 'Moreau', 'Novak', 'Okafor', 'Petrov', 'Quispe',
           'Rossi', 'Sato', 'Tanaka', 'Ueda', 'Varga', 'Weber', 'Zhang']),
       'user' || id || '@shop.example',
       timestamptz '2023-01-01 00:00:00+00' + id * interval '53 minutes'
FROM generate_series(1, pg_temp.rows(10000)) AS id, md5('user ' || id) AS hash;
