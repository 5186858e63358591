import { stripTypeScriptTypes } from 'node:module'

/** The JavaScript of one of our modules, line by line: types become spaces, and its imports name `.js` files. */
export const toJavaScript = (name: string, source: string): string =>
  name.endsWith('.ts')
    ? stripTypeScriptTypes(source, { mode: 'strip' }).replaceAll(/'(\.{1,2}\/[^'\n]+)\.ts'/g, "'$1.js'")
    : source

/** The path of that JavaScript. */
export const compiled = (path: string): string => path.replace(/\.ts$/, '.js')
