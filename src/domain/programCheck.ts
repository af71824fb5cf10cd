/**
 * Schema of the result of a program check, in which a process compares its own files with the release
 * (docs/operations.md).
 */
import { type Static, Type } from '#typebox';
import { choice, nullable, timestamp } from './schema.js';

export const ProgramDifferenceKind = choice(
  ['CHANGED', 'MISSING', 'ADDED', 'LOADED'],
  '`LOADED`: the file is unchanged, but the script that Redis has loaded differs from it',
);

export const ProgramPart = choice(
  ['program', 'packages'],
  '`program`: the files of the program itself; `packages`: the files of its installed packages',
);

export const ProgramDifference = Type.Object({
  path: Type.String({ description: 'Path of the file, relative to the folder of the program' }),
  what: ProgramDifferenceKind,
});

export const ProgramCheck = Type.Object({
  checkId: Type.Integer(),
  at: timestamp(),
  host: Type.String({ description: 'Host name of the process' }),
  roles: Type.String({ description: 'Roles of the process, such as `http,worker`' }),
  part: ProgramPart,
  isStart: Type.Boolean({
    description: 'True if the check was made at the start of the process, before it dealt anything',
  }),
  version: Type.String(),
  manifest: nullable(
    Type.String({
      description: 'SHA-256 of the manifest; null if there was no manifest, so that nothing was compared',
    }),
  ),
  files: Type.Integer({ description: 'Number of files that were compared' }),
  scripts: Type.Integer({ description: 'Number of loaded Redis scripts that were compared' }),
  differing: Type.Integer({ description: 'Number of files and scripts that differ' }),
  differences: Type.Array(ProgramDifference, { description: 'The first hundred differences' }),
});

export type ProgramDifference = Readonly<Static<typeof ProgramDifference>>;
