order item;
order owner;
order comments;
