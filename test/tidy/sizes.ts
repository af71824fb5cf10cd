/** `npm run sizes [-- ROOT]`: the longest file and function of a project, and how many are over the limits. */
import { ROOT } from '../support/root.js';
import { FILE_LINES_MAX, FUNCTION_LINES_MAX, lengths, MEASURED } from './lengths.js';

const root = process.argv[2] ?? ROOT;
for (const folders of [...MEASURED.map((folder) => [folder]), MEASURED]) {
  const { files, functions } = lengths(root, folders);
  const [file] = files;
  const [longest] = functions;
  console.log(`${folders.join(', ')}: ${files.length} files`);
  console.log(`  longest file       ${file?.name ?? 'none'} (${file?.lines ?? 0} lines)`);
  console.log(`  longest function   ${longest?.name ?? 'none'} (${longest?.lines ?? 0} lines)`);
  console.log(
    `  files over ${FILE_LINES_MAX}     ${files.filter(({ lines }) => lines > FILE_LINES_MAX).length}`,
  );
  console.log(
    `  functions over ${FUNCTION_LINES_MAX}  ${functions.filter(({ lines }) => lines > FUNCTION_LINES_MAX).length}`,
  );
}
