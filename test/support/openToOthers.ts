/** Finds files and folders that other users of the machine could list, read or change. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Returns which of the folder and its contents are open to other users, each as `path mode`. */
export function openToOthers(folder: string): string[] {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = all.filter((each) => !each.isSymbolicLink()).map((each) => join(each.parentPath, each.name));
  return [folder, ...paths].flatMap((path) => {
    const mode = (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
    return (mode & 0o077) === 0 ? [] : [`${path} ${mode.toString(8)}`];
  });
}
