/**
 * A log for tests: a tree in memory, its signed checkpoints, and an HTTP server that serves it as C2SP
 * tlog-tiles.
 */
import { createServer } from 'node:http';
import { checkpointText } from '../../../src/domain/publicLog/checkpoints.js';
import { type Signer, signatureLine, signerOf } from '../../../src/domain/publicLog/notes.js';
import { submissionText } from '../../../src/domain/publicLog/submissions.js';
import { bundleOf, parseTilePath, tileOf, widthAt } from '../../../src/domain/publicLog/tiles.js';
import { consistencyPath, leafHash, MemoryTree } from '../../../src/domain/publicLog/tree.js';

export class TestLog {
  readonly signer: Signer;
  readonly records: Buffer[] = [];
  readonly tree = new MemoryTree();

  constructor(
    readonly origin: string,
    seed = 1,
  ) {
    this.signer = signerOf(origin, 'log', Buffer.alloc(32, seed));
  }

  /**
   * Appends records up to a size.
   * @param text the text of each new record
   */
  grow(size: number, text = 'record'): this {
    while (this.tree.size < size) {
      const record = Buffer.from(`${text} ${this.tree.size}`);
      this.records.push(record);
      this.tree.append(leafHash(record));
    }
    return this;
  }

  note(size = this.tree.size, signer = this.signer): string {
    const text = checkpointText({ origin: this.origin, size, root: this.tree.root(size) });
    return `${text}\n${signatureLine(text, signer)}`;
  }

  proof(old: number, size: number): Buffer[] {
    return old === 0 || old >= size ? [] : consistencyPath(old, size, this.tree.read);
  }

  submission(old: number, size = this.tree.size): string {
    return submissionText({ old, proof: this.proof(old, size), note: this.note(size) });
  }

  file(path: string, size: number): Buffer | undefined {
    if (path === 'checkpoint') return Buffer.from(this.note(size));
    const place = parseTilePath(path);
    if (place === undefined || widthAt(place.level, place.index, size) < place.width) return undefined;
    const { level, index, width } = place;
    return level === 'entries'
      ? bundleOf(this.records.slice(index * 256, index * 256 + width))
      : tileOf(level, index, width, this.tree.read);
  }
}

/**
 * Serves a log with a checkpoint of a size over HTTP.
 * @param shown returns the log and the size for each request
 */
export async function showLog(
  shown: () => { log: TestLog; size: number },
): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    const { log, size } = shown();
    const body = log.file(request.url!.slice(1), request.url === '/checkpoint' ? size : log.tree.size);
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, close: () => server.closeAllConnections() ?? server.close() };
}
