/**
 * Highlights code samples with Shiki while the pages are built. Each token has a class instead of an inline
 * style, because the Content Security Policy of the pages refuses inline styles.
 */
import { createCssVariablesTheme, createHighlighterCoreSync } from 'shiki/core';
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript';
import go from 'shiki/langs/go.mjs';
import http from 'shiki/langs/http.mjs';
import javascript from 'shiki/langs/javascript.mjs';
import json from 'shiki/langs/json.mjs';
import php from 'shiki/langs/php.mjs';
import python from 'shiki/langs/python.mjs';
import shellscript from 'shiki/langs/shellscript.mjs';
import sql from 'shiki/langs/sql.mjs';
import typescript from 'shiki/langs/typescript.mjs';
import { escaped, ORIGIN } from './pages.js';

const THEME = 'css-variables';
const highlighter = createHighlighterCoreSync({
  themes: [createCssVariablesTheme({ name: THEME })],
  langs: [go, http, javascript, json, php, python, shellscript, sql, typescript],
  engine: createJavaScriptRegexEngine(),
});
const LANGUAGES = highlighter.getLoadedLanguages();

/** Classes of tokens that the style sheet colours. All other tokens have the colour of the text. */
const CLASSES = ['comment', 'constant', 'function', 'keyword', 'parameter', 'string'];

function classOf({ content, color }: Token, language: string): string | undefined {
  const [, name] = /^var\(--shiki-token-([\w-]+)/.exec(color ?? '') ?? [];
  // A command's words are strings without quotation marks: as strings, they would all have one colour.
  if (language === 'sh' && name === 'string') return content.startsWith('-') ? 'parameter' : undefined;
  return CLASSES.find((each) => each === name?.split('-')[0]);
}

interface Token {
  readonly content: string;
  readonly color?: string;
}

interface Part {
  text: string;
  readonly name: string | undefined;
}

/** Joins neighbours of the same class, and the parts of the service's address, which the script replaces. */
function joined(tokens: readonly Token[], language: string): Part[] {
  const parts: Part[] = [];
  const line = tokens.map(({ content }) => content).join('');
  let at = 0;
  for (const token of tokens) {
    const { content } = token;
    const name = classOf(token, language);
    const last = parts.at(-1);
    const address = line.lastIndexOf(ORIGIN, at);
    const isInAddress = address >= 0 && address < at && at < address + ORIGIN.length;
    if (last !== undefined && (isInAddress || last.name === name || content.trim() === ''))
      last.text += content;
    else parts.push({ text: content, name });
    at += content.length;
  }
  return parts;
}

/** Returns the HTML of a sample. The HTML has no colours if the language is unknown. */
export function highlighted(code: string, language: string): string {
  if (!LANGUAGES.includes(language)) return escaped(code);
  const { tokens } = highlighter.codeToTokens(code, { lang: language, theme: THEME });
  return tokens
    .map((line) =>
      joined(line, language)
        .map(({ text, name }) =>
          name === undefined ? escaped(text) : `<i class="${name}">${escaped(text)}</i>`,
        )
        .join(''),
    )
    .join('\n');
}

/** Returns a block of code. A drawing, which has no language, is not wrapped. */
export const codeBlock = (code: string, language: string): string =>
  `<pre tabindex="0"${language === '' ? ' class="drawing"' : ''}><code>${highlighted(code, language)}</code></pre>\n`;
