/**
 * Writes the console to dist/console as one page, one script and one style sheet. `npm run build` runs this
 * tool.
 */
import { join } from 'node:path';
import { writePages } from './writePages.js';

const ROOT = 'console';
const FOLDER = join('dist', 'console');

async function build(): Promise<void> {
  const vite = await import('vite');
  const built = await vite.build({
    root: ROOT,
    base: '/console/',
    configFile: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      write: false,
      assetsDir: '',
      target: 'es2022',
      modulePreload: false,
      // The file names stay the same in every build, so that a page in a browser's cache still finds its
      // script after an upgrade.
      rollupOptions: { output: { entryFileNames: 'app.js', assetFileNames: 'style[extname]' } },
    },
  });
  const outputs = [built].flat().flatMap((each) => ('output' in each ? each.output : []));
  const files = outputs.map((file): [string, string] => [
    file.fileName,
    file.type === 'chunk' ? file.code : Buffer.from(file.source).toString('utf8'),
  ]);
  writePages(FOLDER, new Map(files));
}

await build().catch((error: unknown) => {
  // Vite does not support the oldest Node version that the service supports.
  if (Number.parseFloat(process.versions.node) >= 20.19) throw error;
  process.stderr.write(
    `The console was not built, because Vite does not run on Node ${process.versions.node}\n`,
  );
});
