import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { metadataOf } from '../../sdk/metadata.ts'
import { MAX_FRAME } from '../frames.ts'
import type { Channel } from './channel.ts'
import { isFunction } from './functions.ts'
import { namespacesIn, sourcesIn } from './modules.ts'
import { describeLoad, syntaxErrorOf } from './thrown.ts'

/** Bytes of one TypeScript module, which grows when it becomes JSON in a frame. */
const MAX_CODE = MAX_FRAME / 2

/** Strips the types of every TypeScript module. Lines and columns do not change. */
export const strip = ({ send, flush }: Channel, dir: string): void => {
  for (const file of sourcesIn(dir).filter((each) => each.endsWith('ts'))) {
    send({ type: 'loading', file })
    flush()
    const code = stripped(readFileSync(join(dir, file), 'utf8'), file)
    if (Buffer.byteLength(code) > MAX_CODE) {
      send({
        type: 'stripped',
        file,
        code: broken(file, 1, `Expected at most ${MAX_CODE} bytes of TypeScript`),
      })
    } else send({ type: 'stripped', file, code })
  }
  send({ type: 'done' })
}

const stripped = (code: string, file: string): string => {
  try {
    return stripTypeScriptTypes(code, { mode: 'strip' })
  } catch (thrown) {
    const { message, line } = syntaxErrorOf(thrown)
    return broken(file, line, message)
  }
}

/** Returns a module that fails to load with the message, at the line of the mistake. */
const broken = (file: string, line: number, message: string): string =>
  `${'\n'.repeat(line - 1)}throw new SyntaxError(${JSON.stringify(`${file}:${line}: ${message}`)})\n`

/** Loads every namespace of the build and reports its exported functions. Stops at the first failure. */
export const inspect = async ({ send, flush }: Channel, dir: string): Promise<void> => {
  for (const { ns, file } of namespacesIn(dir)) {
    send({ type: 'loading', file })
    flush()
    try {
      const module: Record<string, unknown> = await import(pathToFileURL(join(dir, file)).href)
      const functions = Object.keys(module)
        .filter((name) => isFunction(module[name]))
        .map((name) => ({ var: name, metadata: metadataOf(module[name]) }))
      send({ type: 'module', ns, file, functions })
    } catch (thrown) {
      send({ type: 'done', error: describeLoad(thrown, file, dir) })
      return
    }
  }
  send({ type: 'done' })
}
