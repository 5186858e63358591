import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { PACKAGE, type Package, readPackage } from '../bundle/packageJson.ts'
import { plainName } from '../bundle/settings.ts'
import { adviceFor } from '../disk/fullDisk.ts'
import { makeFolder } from '../disk/makeFolder.ts'
import { AppError, messageOf } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { command } from './command.ts'
import { asEditor } from './fileModes.ts'

const HELLO = `import { emit, fn } from 'svc'

interface Greeting {
  readonly name?: string
}

/** Runs for each \`hello:said\` event. */
export const onHello = fn({ 'on-event': 'hello:said' }, async (event: { readonly data: Greeting }) => {
  const { name = 'world' } = event.data
  await emit('word', \`Hello, \${name}!\`)
  return { greeted: name }
})

/** Started by reference: svc run hello/add 1 2 */
export const add = (a = 1, b = 2) => a + b
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

const GITIGNORE = '.gitignore'
/** What contains keys and secrets. */
const PRIVATE = ['.svc', '.env.svc']

const filesOf = (folder: string): Readonly<Record<string, string>> => ({
  [PACKAGE]: prettyJson({
    name: plainName(basename(folder)) || 'functions',
    private: true,
    type: 'module',
    svc: { src: 'src' },
  }),
  'tsconfig.json': prettyJson({ compilerOptions, include: ['src', 'svc.gen.d.ts'] }),
  'src/hello.ts': HELLO,
  [GITIGNORE]: ['node_modules', ...PRIVATE].map((path) => `${path}\n`).join(''),
  '.env.svc.example':
    '# Copy this file to .env.svc. Each line is a context variable of the project.\nPAYMENT_KEY=example\n',
})

export const initCommand = command({
  name: 'init',
  summary: 'create a project with a first function',
  description:
    'Creates package.json, tsconfig.json, src/hello.ts, .gitignore and .env.svc.example. Files that exist are kept as they ' +
    'are; only a package.json without "type" gets "type": "module", and another type is reported. A failure leaves nothing behind. It asks nothing, and ' +
    'installs nothing.',
  arguments: { folder: { description: 'the folder (default: the working directory)', count: 'optional' } },
  examples: ['svc init orders', 'svc init --json'],
  run({ args }) {
    const folder = resolve(args.folder ?? '.')
    const given = readPackage(folder) // before anything is written
    const files = Object.entries(filesOf(folder))
    const writing = openWriting()
    try {
      const created = files
        .filter(([path, text]) => writing.create(join(folder, path), text))
        .map(([path]) => path)
      const others = files.map(([path]) => path).filter((path) => !created.includes(path))
      const changed = given && addType(join(folder, PACKAGE), given) ? [PACKAGE] : []
      const kept = others.filter((path) => !changed.includes(path))
      const warnings = [...warningsAbout(given), ...warningsAboutGit(folder)]
      return Promise.resolve(resultOf(folder, { created, changed, kept, warnings }))
    } catch (error) {
      writing.undo()
      throw error
    }
  },
})

interface Files {
  readonly created: readonly string[]
  readonly changed: readonly string[]
  readonly kept: readonly string[]
  readonly warnings: readonly string[]
}

const NEXT = 'next: npx svc dev starts a service here and deploys the functions after each save\n'

/** Functions are bundled from any package, but Node does not load them in a test. `npm init -y` writes this type. */
const warningsAbout = (given: Package | null): readonly string[] =>
  given !== null && 'type' in given.fields && given.fields['type'] !== 'module'
    ? [`${PACKAGE}: "type" is not "module", which tests of functions need: npm pkg set type=module`]
    : []

/** A `.gitignore` that was kept may not name what contains secrets. */
const warningsAboutGit = (folder: string): readonly string[] => {
  const patterns = textIn(join(folder, GITIGNORE)).split('\n')
  const missing = PRIVATE.filter((path) => !patterns.some((pattern) => matches(pattern, path)))
  return missing.length === 0
    ? []
    : [`${GITIGNORE}: add ${missing.join(' and ')}, which contain${missing.length === 1 ? 's' : ''} secrets`]
}

/** Whether a line of a `.gitignore`, such as `/.svc/` or `.env*`, matches a name in its folder. */
const matches = (line: string, name: string): boolean => {
  const parts = line
    .trim()
    .replace(/^(?:\*\*)?\/|\/$/g, '')
    .split('*')
  const pattern = parts.map((part) => part.replaceAll(/[^\w/-]/g, String.raw`\$&`)).join('[^/]*')
  return new RegExp(`^${pattern}$`).test(name)
}

const textIn = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // git cannot read it either
  }
}

const resultOf = (folder: string, { created, changed, kept, warnings }: Files) => {
  const lines = [
    ...created.map((path) => `  + ${path}`),
    ...changed.map((path) => `  ~ ${path} ("type": "module" added)`),
    ...kept.map((path) => `  = ${path} (kept)`),
  ]
  const warned = warnings.map((warning) => `warning: ${warning}\n`).join('')
  const text = `${onOneLine(folder)}\n${lines.join('\n')}\n${warned}${NEXT}`
  return { json: { folder, created, changed, kept, warnings }, text }
}

/** Whether `type` was added. `npm i` in an empty folder writes a package.json without it, and the modules are ES modules. */
const addType = (file: string, { text, fields }: Package): boolean => {
  if ('type' in fields) return false
  const indent = /^[ \t]+/m.exec(text)?.[0] ?? 2
  const part = `${file}.part`
  writing(file, () => {
    try {
      writeFileSync(part, `${JSON.stringify({ type: 'module', ...fields }, null, indent)}\n`)
      renameSync(part, file) // a full disk leaves the file of the author
    } finally {
      rmSync(part, { force: true })
    }
  })
  return true
}

/** Creates files, and removes them again if a later one cannot be written: a project is there as a whole or not at all. */
const openWriting = () => {
  const made: string[] = []
  return {
    /** Whether the file was created: one that exists is never replaced. */
    create: (file: string, text: string): boolean => {
      if (existsSync(file)) return false
      writing(file, () => {
        const folder = makeFolder(dirname(file))
        if (folder !== undefined) made.push(folder)
        const fd = openSync(file, 'wx')
        made.push(file)
        try {
          writeFileSync(fd, text)
        } finally {
          closeSync(fd)
        }
      })
      return true
    },
    undo: () => {
      for (const path of made) rmSync(path, { recursive: true, force: true })
    },
  }
}

const writing = (file: string, write: () => void): void => {
  try {
    asEditor(write)
  } catch (error) {
    throw new AppError(
      'bad_request',
      `folder: cannot write ${onOneLine(file)}: ${messageOf(error)}${adviceFor(error)}`,
      {
        cause: error,
      },
    )
  }
}
