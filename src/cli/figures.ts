/** Figures for people, in English. */
const numbers = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

export const count = (value: number): string => numbers.format(value)

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

export const bytes = (value: number): string => {
  let [size, unit] = [value, 0]
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024
    unit++
  }
  return `${unit === 0 || size >= 100 ? numbers.format(size) : size.toFixed(1)} ${UNITS[unit]}`
}

export const duration = (ms: number): string => {
  const seconds = Math.round(ms / 1000)
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}
