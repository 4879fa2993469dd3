import http from 'k6/http';
import sql from 'k6/x/sql';
import driver from 'k6/x/sql/driver/postgres';

const db = sql.open(driver, 'postgres://user:password@localhost:5432/db');

export default function () {
  const rows = db.query('SELECT 1');
  http.get(`${__ENV.BASE}/${rows.length}`);
}
