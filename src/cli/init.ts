import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
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

const compilerOptions = {
  target: 'esnext',
  module: 'nodenext',
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
}

const prettyJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The name of a package for a folder of any name. */
const packageName = (folder: string): string =>
  basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '') || 'functions'

const filesOf = (folder: string): Readonly<Record<string, string>> => ({
  'package.json': prettyJson({
    name: packageName(folder),
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
    'are. It asks nothing, and installs nothing.',
  arguments: { folder: { description: 'the folder (default: the working directory)', count: 'optional' } },
  options: { yes: { description: 'accepted for scripts: there is no question' } },
  examples: ['svc init orders', 'svc init --json'],
  run({ args }) {
    const folder = resolve(args.folder ?? '.')
    const files = Object.entries(filesOf(folder))
    const created = files.filter(([path, text]) => create(join(folder, path), text)).map(([path]) => path)
    const kept = files.map(([path]) => path).filter((path) => !created.includes(path))
    const lines = [...created.map((path) => `  + ${path}`), ...kept.map((path) => `  = ${path} (kept)`)]
    return Promise.resolve({
      json: { folder, created, kept },
      text: `${onOneLine(folder)}\n${lines.join('\n')}\n`,
    })
  },
})

/** Whether the file was created: one that exists is never replaced. */
const create = (file: string, text: string): boolean => {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { flag: 'wx', mode: 0o644 })
    return true
  } catch (error) {
    if (existsSync(file)) return false
    throw new AppError('bad_request', `folder: cannot write ${onOneLine(file)}: ${messageOf(error)}`, {
      cause: error,
    })
  }
}
