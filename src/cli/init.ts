import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { plainName } from '../bundle/settings.ts'
import { makeFolder } from '../disk/makeFolder.ts'
import { AppError, messageOf } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { command } from './command.ts'

const HELLO = `import { emit, fn } from 'svc'

interface Greeting {
  readonly name: string
}

/** Runs for each \`hello:said\` event. */
export const onHello = fn({ 'on-event': 'hello:said' }, async (event: { readonly data: Greeting }) => {
  await emit('word', \`Hello, \${event.data.name}!\`)
  return { greeted: event.data.name }
})

/** Started by reference: svc run hello/add 1 2 */
export const add = (a: number, b: number) => a + b
`

const PACKAGE = 'package.json'

const compilerOptions = {
  target: 'esnext',
  module: 'nodenext',
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
}

const prettyJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

const filesOf = (folder: string): Readonly<Record<string, string>> => ({
  [PACKAGE]: prettyJson({
    name: plainName(basename(folder)) || 'functions',
    private: true,
    type: 'module',
    svc: { src: 'src' },
  }),
  'tsconfig.json': prettyJson({ compilerOptions, include: ['src', 'svc.gen.d.ts'] }),
  'src/hello.ts': HELLO,
  '.gitignore': 'node_modules\n.svc\n.env.svc\n',
  '.env.svc.example':
    '# Copy this file to .env.svc. Each line is a context variable of the project.\nPAYMENT_KEY=example\n',
})

export const initCommand = command({
  name: 'init',
  summary: 'create a project with a first function',
  description:
    'Creates package.json, tsconfig.json, src/hello.ts, .gitignore and .env.svc.example. Files that exist are kept as they ' +
    'are; only a package.json without "type" gets "type": "module". It asks nothing, and installs nothing.',
  arguments: { folder: { description: 'the folder (default: the working directory)', count: 'optional' } },
  examples: ['svc init orders', 'svc init --json'],
  run({ args }) {
    const folder = resolve(args.folder ?? '.')
    const files = Object.entries(filesOf(folder))
    const created = files.filter(([path, text]) => create(join(folder, path), text)).map(([path]) => path)
    const others = files.map(([path]) => path).filter((path) => !created.includes(path))
    const changed = others.filter((path) => path === PACKAGE && addType(join(folder, path)))
    const kept = others.filter((path) => !changed.includes(path))
    const lines = [
      ...created.map((path) => `  + ${path}`),
      ...changed.map((path) => `  ~ ${path} ("type": "module" added)`),
      ...kept.map((path) => `  = ${path} (kept)`),
    ]
    return Promise.resolve({
      json: { folder, created, changed, kept },
      text: `${onOneLine(folder)}\n${lines.join('\n')}\n`,
    })
  },
})

/** Whether `type` was added. `npm i` in an empty folder writes a package.json without it, and the modules are ES modules. */
const addType = (file: string): boolean => {
  try {
    const text = readFileSync(file, 'utf8')
    const content = JSON.parse(text) as unknown
    if (typeof content !== 'object' || content === null || Array.isArray(content) || 'type' in content)
      return false
    const indent = /^[ \t]+/m.exec(text)?.[0] ?? 2
    writeFileSync(file, `${JSON.stringify({ type: 'module', ...content }, null, indent)}\n`)
    return true
  } catch {
    return false // npm reports what is wrong with it
  }
}

/** Whether the file was created: one that exists is never replaced. */
const create = (file: string, text: string): boolean => {
  try {
    makeFolder(dirname(file))
    writeFileSync(file, text, { flag: 'wx', mode: 0o644 })
    return true
  } catch (error) {
    if (existsSync(file)) return false
    throw new AppError('bad_request', `folder: cannot write ${onOneLine(file)}: ${messageOf(error)}`, {
      cause: error,
    })
  }
}
