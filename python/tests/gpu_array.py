"""Memory of a GPU without torch: arrays made by the driver, which show themselves by DLPack."""

import ctypes

import numpy

CUDA = 2  # DLPack's number


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("size", ctypes.POINTER(ctypes.c_int64)),
        ("stride", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Driver:
    """The driver with the primary context of GPU 0; raises OSError where there is none."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        count, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise OSError("no GPU")
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name}: {status}")


class GpuArray:
    """A copy of an array of NumPy in memory of GPU 0."""

    def __init__(self, driver, values):
        self.driver, self.like = driver, numpy.ascontiguousarray(values)
        address = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(self.like.nbytes, 1)))
        self.address = address.value
        self._copy("cuMemcpyHtoDAsync_v2", self.address, self.like.ctypes.data)

    def _copy(self, name, to, source):
        arguments = (ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(self.like.nbytes), None)
        self.driver.call(name, *arguments)
        self.driver.call("cuCtxSynchronize")

    def numpy(self):
        self.driver.call("cuCtxSynchronize")
        values = numpy.empty_like(self.like)
        self._copy("cuMemcpyDtoHAsync_v2", values.ctypes.data, self.address)
        return values

    def __dlpack__(self, **_):
        sizes = (ctypes.c_int64 * self.like.ndim)(*self.like.shape)
        code = {"f": 2, "i": 0, "u": 4}[self.like.dtype.kind]  # NumPy has no bf16: its bits are uint16
        bits = self.like.dtype.itemsize * 8
        managed = Managed(Tensor(self.address, CUDA, 0, self.like.ndim, code, bits, 1, sizes, None, 0))
        self.shown = managed, sizes  # must live as long as the capsule is used
        return _capsule(ctypes.addressof(managed), b"dltensor", None)

    def __dlpack_device__(self):
        return CUDA, 0
