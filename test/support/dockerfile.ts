/** Reads the stages and instructions of a Dockerfile, as far as the project's Dockerfile uses them. */

export interface Failpoint {
  /** Name of the instruction: `RUN`, `COPY`, …. */
  readonly name: string;
  /** The arguments on one line, without the instruction's own flags. */
  readonly value: string;
  /**
   * The stage from which a COPY copies, if the instruction names one. `sources` and `target` belong to COPY,
   * too.
   */
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
}

export interface Stage {
  readonly name: string | undefined;
  readonly image: string;
  readonly steps: readonly Failpoint[];
}

/** @throws Error if the Dockerfile has an instruction that this reader does not support */
export function dockerfile(text: string): Stage[] {
  const variables = new Map<string, string>();
  const stages: (Stage & { steps: Failpoint[] })[] = [];
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '');
  for (const line of lines) {
    const [, name, rest] = /^([A-Z]+) +(.+)$/.exec(line) ?? [];
    if (name === undefined || rest === undefined) throw new Error(`Not an instruction: ${line}`);
    if (name === 'ARG') {
      const [, variable, value] = /^(\w+)=(\S+)$/.exec(rest)!;
      variables.set(variable!, value!);
    } else if (name === 'FROM') {
      const [, image, , stage] = /^(\S+)( AS (\w+))?$/.exec(rest)!;
      stages.push({
        name: stage,
        image: image!.replace(/\$\{(\w+)\}/, (_, v: string) => variables.get(v)!),
        steps: [],
      });
    } else if (KNOWN.has(name)) {
      const flags = [...rest.matchAll(/(?:^|\s)--(\S+)/g)].map(([, flag]) => flag!);
      const value = name === 'RUN' || name === 'COPY' ? rest.replace(/^(--\S+\s+)+/, '') : rest;
      const words = name === 'COPY' ? value.split(/\s+/) : [];
      const from = name === 'COPY' ? flags.find((flag) => flag.startsWith('from='))?.slice(5) : undefined;
      stages
        .at(-1)!
        .steps.push({ name, value, from, sources: words.slice(0, -1), target: words.at(-1) ?? '' });
    } else throw new Error(`Not read here: ${line}`);
  }
  return stages;
}

const KNOWN = new Set([
  'WORKDIR',
  'ENV',
  'COPY',
  'RUN',
  'USER',
  'EXPOSE',
  'HEALTHCHECK',
  'STOPSIGNAL',
  'CMD',
]);
