/** Schema of the result of a process's check of its own files (docs/operations.md). */
import { type Static, Type } from '#typebox';
import { choice, nullable, timestamp } from './schema.js';

export const ProgramDifferenceKind = choice(
  ['CHANGED', 'MISSING', 'ADDED', 'LOADED'],
  'LOADED: the file is as it should be, and the script that Redis runs is not what it gives',
);

export const ProgramPart = choice(
  ['program', 'packages'],
  'The program itself, or the packages that are installed beside it',
);

export const ProgramDifference = Type.Object({
  path: Type.String({ description: 'Of the folder of the program' }),
  what: ProgramDifferenceKind,
});

export const ProgramCheck = Type.Object({
  checkId: Type.Integer(),
  at: timestamp(),
  host: Type.String({ description: 'Of the process' }),
  roles: Type.String({ description: 'Such as `http,worker`' }),
  part: ProgramPart,
  isStart: Type.Boolean({ description: 'Made before the process dealt anything' }),
  version: Type.String(),
  manifest: nullable(
    Type.String({
      description: 'SHA-256 of the list of files; null: there was none, and nothing was compared',
    }),
  ),
  files: Type.Integer({ description: 'Files that were compared' }),
  scripts: Type.Integer({ description: 'Loaded scripts of Redis that were compared' }),
  differing: Type.Integer({ description: 'Files and scripts that differ' }),
  differences: Type.Array(ProgramDifference, { description: 'The first hundred of them' }),
});

export type ProgramDifference = Readonly<Static<typeof ProgramDifference>>;
