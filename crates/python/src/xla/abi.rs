//! C structures of XLA's foreign function interface, major version 0 (`xla/ffi/api/c_api.h`).
//!
//! Only fields that the handler reads are public. A structure starts with its size: a caller with smaller structures
//! than these is refused.

use std::ffi::{c_char, c_int, c_void};

/// Major version of the interface that these structures belong to.
pub(super) const MAJOR: c_int = 0;

/// Type of the extension by which XLA requests the version and the traits of a handler.
pub(super) const METADATA: c_int = 1;

/// `XLA_FFI_ExecutionStage_EXECUTE`.
pub(super) const EXECUTE: c_int = 3;

/// `XLA_FFI_Error_Code_INVALID_ARGUMENT`.
pub(super) const INVALID_ARGUMENT: c_int = 3;

/// `XLA_FFI_AttrType_SCALAR`.
pub(super) const SCALAR: c_int = 3;

/// Element types that the handler takes.
pub(super) mod dtype {
    use std::ffi::c_int;
    pub(in super::super) const PRED: c_int = 1;
    pub(in super::super) const S32: c_int = 4;
    pub(in super::super) const S64: c_int = 5;
    pub(in super::super) const F32: c_int = 11;
    pub(in super::super) const F64: c_int = 12;
}

/// `XLA_FFI_Extension_Base`.
#[repr(C)]
pub(super) struct Extension {
    struct_size: usize,
    pub(super) kind: c_int,
    pub(super) next: *mut Self,
}

/// `XLA_FFI_Api_Version`.
#[repr(C)]
pub(super) struct Version {
    struct_size: usize,
    extension: *mut Extension,
    pub(super) major: c_int,
    pub(super) minor: c_int,
}

/// `XLA_FFI_Metadata`, up to the traits.
#[repr(C)]
pub(super) struct Metadata {
    struct_size: usize,
    pub(super) version: Version,
    pub(super) traits: u32,
}

/// `XLA_FFI_Metadata_Extension`.
#[repr(C)]
pub(super) struct MetadataExtension {
    base: Extension,
    pub(super) metadata: *mut Metadata,
}

/// Opaque error of XLA.
#[repr(C)]
pub(super) struct XlaError {
    _private: [u8; 0],
}

/// `XLA_FFI_Error_Create_Args`.
#[repr(C)]
pub(super) struct ErrorArgs {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) message: *const c_char,
    pub(super) code: c_int,
}

/// `XLA_FFI_Api`, up to the functions that are used.
#[repr(C)]
pub(super) struct Api {
    struct_size: usize,
    extension: *mut Extension,
    version: Version,
    internal: *const c_void,
    pub(super) create_error: extern "C" fn(*mut ErrorArgs) -> *mut XlaError,
}

/// `XLA_FFI_Buffer`.
#[repr(C)]
pub(super) struct Buffer {
    struct_size: usize,
    extension: *mut Extension,
    pub(super) dtype: c_int,
    pub(super) data: *mut c_void,
    pub(super) rank: i64,
    pub(super) dims: *const i64,
}

/// `XLA_FFI_Args` and `XLA_FFI_Rets`: all are buffers.
#[repr(C)]
pub(super) struct Buffers {
    struct_size: usize,
    extension: *mut Extension,
    pub(super) size: i64,
    pub(super) types: *const c_int,
    pub(super) buffers: *const *const Buffer,
}

/// `XLA_FFI_ByteSpan`.
#[repr(C)]
pub(super) struct Span {
    pub(super) start: *const u8,
    pub(super) len: usize,
}

/// `XLA_FFI_Scalar`.
#[repr(C)]
pub(super) struct Scalar {
    pub(super) dtype: c_int,
    pub(super) value: *const c_void,
}

/// `XLA_FFI_Attrs`.
#[repr(C)]
pub(super) struct Attributes {
    struct_size: usize,
    extension: *mut Extension,
    pub(super) size: i64,
    pub(super) types: *const c_int,
    pub(super) names: *const *const Span,
    pub(super) values: *const *const c_void,
}

/// `XLA_FFI_CallFrame`, up to the attributes.
#[repr(C)]
pub(super) struct Frame {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) api: *const Api,
    context: *mut c_void,
    pub(super) stage: c_int,
    pub(super) args: Buffers,
    pub(super) results: Buffers,
    pub(super) attributes: Attributes,
}

impl Frame {
    /// Returns whether the caller's structures have all fields of these.
    pub(super) fn is_complete(&self) -> bool {
        self.struct_size >= size_of::<Self>()
            && self.args.struct_size >= size_of::<Buffers>()
            && self.results.struct_size >= size_of::<Buffers>()
            && self.attributes.struct_size >= size_of::<Attributes>()
    }
}
