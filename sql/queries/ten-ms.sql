SELECT 10 AS waited_ms FROM pg_sleep(0.010)
