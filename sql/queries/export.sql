SELECT id, sensor, ticks, valid, reading, exact, label, taken_at, day, device, details, samples
FROM shop.measurements
ORDER BY id
