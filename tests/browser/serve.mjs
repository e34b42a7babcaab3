// A static server for one folder, as plain as any that people put the page behind; closed after the test.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

export async function serve(t, folder) {
  const server = createServer(async (request, response) => {
    const name = path.normalize(decodeURIComponent(new URL(request.url, 'http://page').pathname));
    const file = path.join(folder, name.endsWith('/') ? name + 'index.html' : name);
    const body = await readFile(file).catch(() => undefined);
    response.writeHead(body ? 200 : 404, { 'content-type': types[path.extname(file)] ?? 'application/octet-stream' });
    response.end(body);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/`;
}
