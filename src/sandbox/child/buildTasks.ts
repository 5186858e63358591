import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { metadataOf } from '../../sdk/metadata.ts'
import { MAX_DEPTH, MAX_FRAME } from '../frames.ts'
import type { Channel } from './channel.ts'
import { isFunction } from './functions.ts'
import { lossIn } from './jsonLosses.ts'
import { namespacesIn, sourcesIn } from './modules.ts'
import { withOriginalLines } from './originalLines.ts'
import type { Stacks } from './stacks.ts'
import { describeLoad, syntaxErrorOf } from './loadErrors.ts'
import { reportUnsettled } from './unsettled.ts'
import { unusedIn } from './unused.ts'

/** Bytes of one TypeScript module, which grows when it becomes JSON in a frame. */
const MAX_CODE = MAX_FRAME / 2

/** Levels of nesting in metadata. It is in an object in the list `functions` of a frame. */
const MAX_METADATA_DEPTH = MAX_DEPTH - 2

/** Values in the metadata of one function that are checked. More would be too large. */
const MAX_METADATA_VALUES = 10_000

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
  let js: string
  try {
    js = stripTypeScriptTypes(code, { mode: 'strip' })
  } catch (thrown) {
    const { message, line } = syntaxErrorOf(thrown)
    return withOriginalLines(broken(file, line, message), untilLine(code, line))
  }
  const withLines = withOriginalLines(js, code)
  return Buffer.byteLength(withLines) <= MAX_CODE ? withLines : js
}

/** The line of the mistake, after empty ones. */
const untilLine = (code: string, line: number): string =>
  `${'\n'.repeat(line - 1)}${code.split('\n')[line - 1] ?? ''}`

/** Returns a module that fails to load with the message, at the line of the mistake. */
const broken = (file: string, line: number, message: string): string =>
  `${'\n'.repeat(line - 1)}throw new SyntaxError(${JSON.stringify(`${file}:${line}: ${message}`)})\n`

/**
 * Loads every namespace of the build and reports its exported functions. Stops at the first failure, which may be an error
 * without a catch.
 */
export const inspect = async ({ send, flush }: Channel, stacks: Stacks, withinMs: number): Promise<void> => {
  const { dir } = stacks.places
  reportUnsettled(stacks, withinMs, (error) => send({ type: 'done', error }))
  let loading = ''
  // Before the listener that only reports a fault. An unhandled rejection is an uncaught exception in this process.
  process.prependListener('uncaughtException', (thrown: unknown) =>
    send({ type: 'done', error: describeLoad(thrown, loading, stacks).message }),
  )
  for (const { ns, file } of namespacesIn(dir)) {
    loading = file
    send({ type: 'loading', file })
    flush()
    try {
      const module: Record<string, unknown> = await import(pathToFileURL(join(dir, file)).href)
      await setImmediate() // Node reports an unhandled rejection at the end of the turn
      const functions = Object.keys(module)
        .filter((name) => isFunction(module[name]))
        .map((name) => ({
          var: name,
          metadata: checkedMetadata(metadataOf(module[name]), `${file}: ${name}: `),
        }))
      const unused = unusedIn(module)
      send({ type: 'module', ns, file, functions, ...(unused.length > 0 && { unused }) })
    } catch (thrown) {
      const error =
        thrown instanceof LostMetadata ? thrown.message : describeLoad(thrown, file, stacks).message
      return send({ type: 'done', error })
    }
  }
  send({ type: 'done' })
}

export class LostMetadata extends Error {}

/** Returns the metadata. Throws `LostMetadata` for a value that JSON leaves out, which would be ignored in silence. */
export const checkedMetadata = (metadata: unknown, where: string): unknown => {
  const loss = lossIn(metadata, {
    root: 'metadata',
    maxDepth: MAX_METADATA_DEPTH,
    maxValues: MAX_METADATA_VALUES,
  })
  if (!loss) return metadata
  throw new LostMetadata(
    `${where}Expected metadata that can be converted to JSON: ${loss.path} is ${loss.reason}`,
  )
}
