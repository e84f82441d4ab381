transfer lock;
transfer update;
transfer record;
