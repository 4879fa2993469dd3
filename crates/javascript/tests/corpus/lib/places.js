export const here = (path) => import.meta.resolve(path);
export const text = open(here('../data/users.txt'));
