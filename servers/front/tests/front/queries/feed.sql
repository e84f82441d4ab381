feed
