import { AsyncLocalStorage } from 'node:async_hooks'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { type REPLServer, start } from 'node:repl'
import { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import * as sdk from '../../sdk/index.ts'
import { namespacesIn } from './modules.ts'
import { whileLoading } from './timers.ts'
import { syntaxErrorOf } from './loadErrors.ts'

/** Sessions kept for `repl_id`s; the least recently used one is dropped first. */
const MAX_SESSIONS = 16

const sessions = new Map<string, Promise<REPLServer>>()

/** Rejects the current evaluation: Node's REPL reports errors to a handler of the whole session. */
const failing = new AsyncLocalStorage<(error: unknown) => void>()

/**
 * Evaluates TypeScript or JavaScript in Node's REPL, with top-level await, and resolves with the value of
 * the last expression. The SDK and `ns`, the build's modules by namespace, are in scope. Relative imports
 * start at the build. Declarations are kept for the same `repl_id`.
 */
export const evaluate = async (code: string, repl_id: string | undefined, dir: string): Promise<unknown> => {
  const source = withoutTypes(code)
  const session = await sessionOf(repl_id, dir)
  return new Promise((resolve, reject) => {
    failing.run(reject, () =>
      session.eval(`${source}\n`, session.context, 'eval', (error, value: unknown) => {
        if (error) reject(error)
        else resolve(value)
      }),
    )
  })
}

const withoutTypes = (code: string): string => {
  const expression = code.trimStart().startsWith('{') ? `(${code.trim().replace(/;$/, '')}\n)` : code
  for (const candidate of new Set([expression, code])) {
    try {
      return stripTypeScriptTypes(candidate, { mode: 'strip' })
    } catch (thrown) {
      if (candidate !== code) continue // a block, not an object
      const { message, line } = syntaxErrorOf(thrown)
      throw new SyntaxError(`eval:${line}: ${message}`, { cause: thrown })
    }
  }
  return code
}

const sessionOf = (repl_id: string | undefined, dir: string): Promise<REPLServer> => {
  const known = repl_id === undefined ? undefined : sessions.get(repl_id)
  const session = known ?? openSession(dir)
  if (repl_id === undefined) return session
  sessions.delete(repl_id)
  sessions.set(repl_id, session)
  for (const oldest of sessions.keys()) {
    if (sessions.size <= MAX_SESSIONS) break
    sessions.delete(oldest)
  }
  return session
}

const openSession = async (dir: string): Promise<REPLServer> => {
  const session = start({
    input: new Readable({ read: () => {} }),
    output: new Writable({ write: (_chunk, _encoding, done) => done() }),
    prompt: '',
    terminal: false,
    handleError: (error: unknown) => {
      failing.getStore()?.(error)
      return 'ignore'
    },
  })
  Object.assign(session.context, sdk, { ns: await loadAll(dir), console })
  return session
}

/** A module that does not load throws its error on access, so the others can still be used. */
const loadAll = async (dir: string): Promise<object> => {
  const all: object = Object.create(null)
  for (const { ns, file } of namespacesIn(dir)) {
    try {
      const module: unknown = await whileLoading(() => import(pathToFileURL(join(dir, file)).href))
      Object.defineProperty(all, ns, { enumerable: true, value: module })
    } catch (error) {
      Object.defineProperty(all, ns, {
        get: () => {
          throw error
        },
      })
    }
  }
  return all
}
