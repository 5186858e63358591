import { existsSync, readFileSync } from 'node:fs'
import { attackSuite } from './attack.ts'

interface Package {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly inBundle?: boolean
  /** Not part of an installation with `--omit=dev`. */
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

interface Manifest extends Package {
  readonly allowScripts?: Readonly<Record<string, boolean>>
  readonly scripts?: Readonly<Record<string, string>>
}

const read = <T>(path: string): T =>
  JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')) as T

const locked = (path: string) => read<{ packages: Readonly<Record<string, Package>> }>(path).packages
const nameOf = (path: string): string => path.split('node_modules/').at(-1) ?? path

const REGISTRY = 'https://registry.npmjs.org/'
const EXACT = /^(npm:(@[\w-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+$/

attackSuite('the supply chain', [
  {
    id: 'B/17-supply-chain',
    attempt: 'exchange a dependency: another registry, a changed package, a range of versions',
    severity: 'medium',
    run() {
      const manifest = read<Manifest>('package.json')
      const { '': root, ...packages } = locked('package-lock.json')
      const direct = {
        ...manifest.dependencies,
        ...manifest.devDependencies,
        ...manifest.optionalDependencies,
      }
      const loose = Object.entries(direct).filter(([, version]) => !EXACT.test(version))
      if (loose.length > 0) throw new Error(`not pinned: ${loose.join(' ')}`)
      const named = { ...root?.dependencies, ...root?.devDependencies, ...root?.optionalDependencies }
      if (JSON.stringify(Object.entries(named).sort()) !== JSON.stringify(Object.entries(direct).sort()))
        throw new Error('the lock file does not belong to package.json')
      const deployed = Object.entries(packages).filter(([, { dev }]) => !dev)
      for (const [path, { resolved = REGISTRY, integrity = '', inBundle }] of deployed) {
        if (inBundle) continue // part of another package, whose integrity covers it
        if (!resolved.startsWith(REGISTRY)) throw new Error(`${path} is from ${resolved}`)
        if (!integrity.startsWith('sha512-')) throw new Error(`${path} has the integrity ${integrity}`)
      }
      return Promise.resolve(
        `${Object.keys(direct).length} direct dependencies are pinned; all ${deployed.length} packages of production have a SHA-512`,
      )
    },
  },
  {
    id: 'B/17-supply-chain/scripts',
    attempt: 'run code during the installation: an install script of a dependency',
    severity: 'high',
    run() {
      const { allowScripts = {} } = read<Manifest>('package.json')
      const scripted = Object.entries(locked('package-lock.json'))
        .filter(([path, { hasInstallScript }]) => path !== '' && hasInstallScript)
        .map(([path]) => nameOf(path))
      const undecided = scripted.filter((name) => allowScripts[name] !== false)
      if (undecided.length > 0) throw new Error(`these packages may run scripts: ${undecided.join(', ')}`)
      const allowed = Object.entries(allowScripts).filter(([, isAllowed]) => isAllowed)
      if (allowed.length > 0) throw new Error(`allowed: ${allowed.join(' ')}`)
      return Promise.resolve(
        `no dependency runs a script; refused: ${[...new Set(scripted)].join(', ') || 'none'}`,
      )
    },
  },
  {
    id: 'B/17-supply-chain/installed',
    attempt: 'run the service with another package than the lock file names',
    severity: 'medium',
    run() {
      if (!existsSync(new URL('../../node_modules/.package-lock.json', import.meta.url)))
        throw new Error('Expected packages that npm ci installed')
      const packages = locked('package-lock.json')
      const installed = Object.entries(locked('node_modules/.package-lock.json')).filter(
        ([, { link, dev }]) => !link && !dev,
      )
      for (const [path, { version, integrity }] of installed) {
        const expected = packages[path]
        if (expected?.version !== version || expected?.integrity !== integrity)
          throw new Error(`${path} is ${version}, the lock file names ${expected?.version}`)
        const { version: found } = read<Package>(`${path}/package.json`)
        if (found !== version) throw new Error(`${path} contains ${found}`)
      }
      return Promise.resolve(`${installed.length} installed packages are those of the lock file`)
    },
  },
])
