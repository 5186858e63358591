import { spawn } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { compiled, toJavaScript } from '../sandbox/toJavaScript.ts'
import { writeDashboard } from './dashboard.ts'
import { writeSwaggerUi } from './swaggerUi.ts'

/**
 * Writes `dist`, the code of the installed package: the JavaScript of every module, the declarations of those that users
 * import, the dashboard and the page of the API. The checkout itself runs from `src`.
 */
export const buildPackage = async (dir: string, tsc: string): Promise<void> => {
  const next = join(dir, `dist.${process.pid}`)
  try {
    await writeModules(join(dir, 'src'), next)
    await declare(tsc, dir, next)
    await writeDashboard(dir, join(next, 'ui'))
    await writeSwaggerUi(next)
    await rm(join(dir, 'dist'), { recursive: true, force: true })
    await rename(next, join(dir, 'dist'))
  } finally {
    await rm(next, { recursive: true, force: true })
  }
}

/** The compiler of the checkout; null where it was installed without the packages for developers. */
export const tscIn = (dir: string): string | null => {
  try {
    return join(
      dirname(createRequire(join(dir, 'package.json')).resolve('typescript/package.json')),
      'bin/tsc',
    )
  } catch {
    return null
  }
}

/** The modules of the dashboard, which run in browsers only. */
const BUNDLED = `ui${sep}`

/** Node refuses to strip types below `node_modules`, so an installed package needs JavaScript. */
const writeModules = async (src: string, to: string): Promise<void> => {
  for (const entry of await readdir(src, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const from = join(entry.parentPath, entry.name)
    if (relative(src, from).startsWith(BUNDLED)) continue
    const target = join(to, compiled(relative(src, from)))
    await mkdir(dirname(target), { recursive: true })
    if (from.endsWith('.ts')) await writeFile(target, toJavaScript(from, await readFile(from, 'utf8')))
    else await cp(from, target)
  }
}

/** Editors of users read the declarations of the modules that `exports` of package.json names. */
const declare = async (tsc: string, dir: string, to: string): Promise<void> => {
  const { exports } = JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly 'svc-checkout': string }>>
  }
  const entries = Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [join(dir, entry['svc-checkout'])],
  )
  const config = join(to, 'tsconfig.json')
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: join(dir, 'src'),
    outDir: to,
  }
  const extended = join(dir, 'tsconfig.json')
  await writeFile(config, JSON.stringify({ extends: extended, compilerOptions, files: entries, include: [] }))
  const output = await outputOf(
    spawn(process.execPath, [tsc, '-p', config, '--pretty', 'false'], { cwd: dir }),
  )
  await rm(config)
  const refused = (): Error => new Error(`Expected tsc to write declarations: ${output}`)
  const wanted = await reachableFrom(
    entries.map((entry) => join(to, declarationOf(relative(join(dir, 'src'), entry)))),
  ).catch(() => {
    throw refused()
  })
  // Values of other modules may have types without a name, because nothing declares them for users.
  const isWanted = (line: string): boolean => {
    const [, path] = /^(.+?)\(\d+,\d+\): error /.exec(line) ?? []
    if (path === undefined) return line.startsWith('error ')
    return wanted.has(join(to, declarationOf(relative(join(dir, 'src'), join(dir, path)))))
  }
  if (output.split('\n').some(isWanted)) throw refused()
  for (const path of await readdir(to, { recursive: true })) {
    const file = join(to, path)
    if (!path.endsWith('.d.ts')) continue
    const text = wanted.get(file)
    if (text === undefined) await rm(file)
    else await writeFile(file, text.replaceAll(RELATIVE, '$1$2.js$1'))
  }
}

/** The specifier of a module of this package. */
const RELATIVE = /(['"])(\.{1,2}\/[^'"\n]+)\.ts\1/g

const declarationOf = (path: string): string => path.replace(/\.ts$/, '.d.ts')

/** The declarations that an editor reads for the entries, by file. TypeScript writes those of private values too. */
const reachableFrom = async (entries: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const found = new Map<string, string>()
  const left = [...entries]
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (found.has(file)) continue
    const text = await readFile(file, 'utf8')
    found.set(file, text)
    for (const [, , module = ''] of text.matchAll(RELATIVE)) left.push(join(dirname(file), `${module}.d.ts`))
  }
  return found
}

/** What the compiler prints. Its exit code does not say which modules have errors. */
const outputOf = (child: ReturnType<typeof spawn>): Promise<string> =>
  new Promise((resolve, reject) => {
    const output: Buffer[] = []
    for (const pipe of [child.stdout, child.stderr]) pipe?.on('data', (bytes: Buffer) => output.push(bytes))
    child.on('error', reject)
    child.on('close', () => resolve(Buffer.concat(output).toString()))
  })
