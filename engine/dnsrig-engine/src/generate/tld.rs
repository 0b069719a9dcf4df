#[derive(Debug, clap::Args)] pub struct Arguments {}
pub fn generate(_:&Arguments)->Result<super::dataset::Described, super::dataset::DatasetError>{ todo!() }
