INSERT INTO shop.fortunes (id, message) VALUES
    (1, 'A queue is a promise that somebody else will wait.'),
    (2, 'The fastest query is the one that was never sent.'),
    (3, 'Averages comfort. Percentiles inform.'),
    (4, 'Every timeout was once somebody''s guess.'),
    (5, '<script>alert("Escape me, or be famous.");</script>'),
    (6, 'Two threads and one lock make a sequential program with extra steps.'),
    (7, 'Żółw śpi, zając czeka na połączenie: 兎は待つ。'),
    (8, 'Retry once for luck, twice for trouble.'),
    (9, 'An index nobody reads is a tax everybody pays.'),
    (10, 'It was fast on my machine, and that is where it stayed.'),
    (11, 'Cache nothing until you have measured something.'),
    (12, 'When the pool is full, even good swimmers stand in line.');
