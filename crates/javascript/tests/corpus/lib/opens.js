const users = open('../data/users.csv');
export const first = users.split('\n')[0];
