SELECT id, message FROM shop.fortunes
