/** Parses CSV into rows by column name, with unquoted fields (RFC 4180). */
export function csvRecords(text: string): Record<string, string>[] {
  const [head, ...rows] = text
    .split('\r\n')
    .slice(0, -1)
    .map((line) =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g)].map(([, quoted, plain]) =>
        quoted === undefined ? plain! : quoted.replaceAll('""', '"'),
      ),
    );
  return rows.map((row) => Object.fromEntries(head!.map((name, i) => [name, row[i]!])));
}
