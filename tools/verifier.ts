/**
 * Writes the three forms of the verifier to dist: the module unchanged; a single page with everything inline,
 * which also works from a local file; and the command `spindle-verify` bundled to one file. `npm run build`
 * runs this tool.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

const MODULE = join('verifier', 'verify.mjs');

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Returns the page. Its Content Security Policy permits only the inline style and script. */
function pageOf(template: string, module: string): string {
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(template) ?? [];
  const [, own = ''] = /<script type="module">([\s\S]*?)<\/script>/.exec(template) ?? [];
  const script = `${module.replace(/^export /gm, '')}${own}`;
  if (script.includes('</script'))
    throw new Error('The verifier contains </script, so it cannot be embedded in a page');
  const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; connect-src 'self'; base-uri 'none'; form-action 'none'`;
  return template.replace('POLICY', () => policy).replace(own, () => script);
}

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const folder = join('dist', 'verifier');
mkdirSync(folder, { recursive: true });
copyFileSync(MODULE, join(folder, 'verify.mjs'));
const page = pageOf(readFileSync(join('verifier', 'page.html'), 'utf8'), readFileSync(MODULE, 'utf8'));
writeFileSync(join(folder, 'verify.html'), page);
buildSync({
  entryPoints: [join('src', 'cli', 'verifierCommand.ts')],
  outfile: join(folder, 'spindle-verify.mjs'),
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'es2022',
  logLevel: 'warning',
  // Some of the bundled packages are CommonJS and call require for modules of Node.js.
  banner: {
    js: `// Spindle ${version}: verifier. Run: node spindle-verify.mjs --help
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);`,
  },
});
